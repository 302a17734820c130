use proptest::prelude::*;

use super::*;

fn header(name: &[u8], entry_type: EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(entry_type);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// One entry in the format of an archive.
fn entry(name: &[u8], entry_type: EntryType, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, entry_type, content.len() as u64).as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn link(name: &[u8], entry_type: EntryType, target: &str) -> Vec<u8> {
    let mut header = header(name, entry_type, 0);
    header.set_link_name_literal(target).unwrap();
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut content = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len() + 1;
        while length != rest.len() + length.to_string().len() {
            length += 1;
        }
        content.push_str(&format!("{length}{rest}"));
    }
    entry(b"pax", EntryType::XHeader, content.as_bytes())
}

fn read(parts: &[Vec<u8>]) -> Result<Vec<(String, Kind, String)>, String> {
    let mut entries = Vec::new();
    let limits = Limits { entries: 100, name_bytes: 100_000, ..Limits::default() };
    read_layer(&parts.concat()[..], &mut Budget::new(&limits), |entry, content| {
        let mut text = String::new();
        content.read_to_string(&mut text)?;
        entries.push((entry.path, entry.kind, text));
        Ok(())
    })
    .map_err(|error| match error {
        LayerError::Hostile(reason) => reason,
        LayerError::Read(error) | LayerError::Write(error) => format!("unreadable: {error}"),
    })?;
    Ok(entries)
}

fn file(path: &str, content: &str) -> (String, Kind, String) {
    (path.to_owned(), Kind::File { size: content.len() as u64 }, content.to_owned())
}

#[test]
fn paths_are_relative_to_image_root() {
    let parts =
        ["a", "./b", "/c", "d//e/./f", "./"].map(|name| entry(name.as_bytes(), EntryType::Regular, b"x"));
    let expected: Vec<_> = ["a", "b", "c", "d/e/f"].iter().map(|path| file(path, "x")).collect();
    assert_eq!(read(&parts).unwrap(), expected);
}

#[test]
fn long_names_apply_to_next_entry() {
    let long = "directory/".repeat(30) + "file";
    let gnu = [
        entry(b"x", EntryType::GNULongName, format!("{long}\0").as_bytes()),
        entry(b"x", EntryType::Regular, b"1"),
    ];
    let pax = [pax(&[("path", &long), ("mtime", "1.5")]), entry(b"x", EntryType::Regular, b"1")];
    let after = entry(b"after", EntryType::Regular, b"2");
    for named in [gnu, pax] {
        let parts = [&named[..], std::slice::from_ref(&after)].concat();
        assert_eq!(read(&parts).unwrap(), [file(&long, "1"), file("after", "2")]);
    }
}

#[test]
fn links_and_special_entries_are_distinguished() {
    let parts = [
        link(b"s", EntryType::Symlink, "../x"),
        link(b"h", EntryType::Link, "/usr/bin/a"),
        entry(b"d", EntryType::Directory, b""),
        entry(b"old/", EntryType::Regular, b""),
        entry(b"c", EntryType::Char, b""),
        entry(b"p", EntryType::Fifo, b""),
    ];
    let kinds: Vec<Kind> = read(&parts).unwrap().into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::Symlink("../x".to_owned()),
            Kind::HardLink("usr/bin/a".to_owned()),
            Kind::Directory,
            Kind::Directory,
            Kind::Special("device"),
            Kind::Special("pipe"),
        ]
    );
}

#[test]
fn entries_that_lead_out_of_the_image_are_hostile() {
    for name in ["../a", "a/../../b", "/..", "a/.."] {
        let error = read(&[entry(name.as_bytes(), EntryType::Regular, b"")]).unwrap_err();
        assert!(error.contains("leads out of the image"), "{name}: {error}");
    }
    let error = read(&[link(b"a", EntryType::Link, "../etc/passwd")]).unwrap_err();
    assert!(error.contains("leads out of the image"), "{error}");
}

#[test]
fn ambiguous_archives_are_hostile() {
    let sizes = [pax(&[("size", "9")]), entry(b"a", EntryType::Regular, b"x")];
    assert!(read(&sizes).unwrap_err().contains("two sizes"));
    let nul = [pax(&[("path", "a\0b")]), entry(b"a", EntryType::Regular, b"x")];
    assert!(read(&nul).unwrap_err().contains("no file can have"));
}

#[test]
fn extended_headers_and_entries_are_limited() {
    let mut huge = header(b"x", EntryType::GNULongName, 1 << 40).as_bytes().to_vec();
    huge.resize((2 << 20) + 512, b'a');
    assert!(read(&[huge]).unwrap_err().contains("extended headers"));
    let many = vec![entry(b"a", EntryType::Regular, b""); 101];
    assert!(read(&many).unwrap_err().contains("more than 100 entries"));
}

#[test]
fn paths_and_links_are_limited_in_total() {
    let long = "d/".repeat(1500);
    let named = |number: usize| {
        let path = format!("{long}{number}");
        [entry(b"x", EntryType::GNULongName, path.as_bytes()), entry(b"x", EntryType::Regular, b"")].concat()
    };
    let linked = |number: usize| {
        let name = number.to_string();
        [entry(b"x", EntryType::GNULongLink, long.as_bytes()), link(name.as_bytes(), EntryType::Symlink, "x")]
            .concat()
    };
    assert_eq!(read(&(0..30).map(named).collect::<Vec<_>>()).unwrap().len(), 30);
    let parts = [(0..40).map(named).collect::<Vec<_>>(), (0..40).map(linked).collect()];
    for parts in parts {
        assert!(read(&parts).unwrap_err().contains("take more than 100000 bytes"));
    }
}

#[test]
fn truncated_archive_is_unreadable() {
    let whole = [entry(b"a", EntryType::Regular, &[1; 2000]), entry(b"b", EntryType::Regular, b"x")].concat();
    for length in [100, 512, 1000, 2600] {
        assert!(read(&[whole[..length].to_vec()]).unwrap_err().contains("unreadable"), "{length}");
    }
}

fn any_entry() -> impl Strategy<Value = Vec<u8>> {
    let name = "[a-c./]{1,12}|(\\.wh\\.)?[ab](/\\.wh\\.\\.wh\\.\\.opq)?";
    let content = prop::collection::vec(any::<u8>(), 0..600);
    (name, 0..8_u8, content, "[a-c./]{1,8}").prop_map(|(name, kind, content, target)| match kind {
        0 => link(name.as_bytes(), EntryType::Symlink, &target),
        1 => link(name.as_bytes(), EntryType::Link, &target),
        2 => entry(name.as_bytes(), EntryType::Directory, b""),
        3 => entry(b"x", EntryType::XHeader, &content),
        4 => pax(&[("path", &target)]),
        _ => entry(name.as_bytes(), EntryType::Regular, &content),
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        check_archive(&bytes);
    }

    #[test]
    fn any_entries_are_read_or_rejected(
        entries in prop::collection::vec(any_entry(), 0..12), cut in any::<prop::sample::Index>(), is_cut in any::<bool>(),
    ) {
        let mut bytes = entries.concat();
        if is_cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        check_archive(&bytes);
    }
}
