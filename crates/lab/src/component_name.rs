//! Component names as names of files, pods and processes in a lab.

use mesh::names::file_name;

const MAX_NAME_BYTES: usize = 40;

/// A component's name in the form that labs use for pods, processes and directories. Long names are cut and
/// end with a hash.
pub(crate) fn lab_name(component: &str) -> String {
    let name = file_name(component);
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let start: String = name.chars().take(MAX_NAME_BYTES - 9).collect();
    format!("{start}-{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::name::check_name;

    #[test]
    fn component_names_become_valid_lab_names() {
        assert_eq!(lab_name("client-proxy"), "client-proxy");
        assert_eq!(lab_name("pair-1/server"), "pair-1--server");
        let long =
            |end: &str| lab_name(&format!("a-namespace-with-a-long-name/a-workload-with-a-long-name-{end}"));
        assert_ne!(long("1"), long("2"));
        for name in [lab_name("pair-1/server"), long("1")] {
            assert_eq!(check_name(&name), Ok(()), "{name}");
        }
    }
}
