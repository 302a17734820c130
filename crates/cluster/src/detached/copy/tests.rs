use super::*;
use std::cell::RefCell;
use std::os::unix::fs::symlink;
use tar::{Builder, Header};

const NAMES: FolderNames<'_> = FolderNames { files: &["summary.json", "trials.jsonl"], folders: &["logs"] };

/// An entry with exactly this name and type, which no builder of archives would write.
fn entry(name: &str, entry_type: EntryType, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(entry_type);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    entry(name, EntryType::Regular, "", content)
}

/// A folder beside a file that no archive may touch.
struct Target {
    root: tempfile::TempDir,
}

impl Target {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("bashrc"), "mine").unwrap();
        fs::create_dir(root.path().join("run")).unwrap();
        Self { root }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("run")
    }

    fn unpack(&self, parts: &[Vec<u8>]) -> Result<Vec<PathBuf>, String> {
        let archive = [parts.concat(), vec![0; 1024]].concat();
        unpack(&archive[..], &self.folder(), NAMES).map_err(|error| error.to_string())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).unwrap()
    }
}

/// The archive is refused with this reason, and nothing outside of the folder has changed.
#[track_caller]
fn assert_refused(parts: &[Vec<u8>], reason: &str) {
    let target = Target::new();
    let error = target.unpack(parts).unwrap_err();
    assert!(error.contains(reason), "{error}");
    assert_eq!(fs::read_to_string(target.root.path().join("bashrc")).unwrap(), "mine");
    let mut beside: Vec<_> =
        fs::read_dir(target.root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["bashrc", "run"]);
}

#[test]
fn files_of_a_run_are_written_and_others_left_out() {
    let target = Target::new();
    let long = format!("logs/trial-000/{}.log", "x".repeat(150));
    let parts = [
        entry("./", EntryType::Directory, "", b""),
        entry("logs", EntryType::Directory, "", b""),
        entry("long", EntryType::GNULongName, "", format!("{long}\0").as_bytes()),
        file("short", b"log"),
        file("./summary.json", b"{}"),
        file("lost+found/x", b"x"),
        file(".bashrc", b"x"),
        file("logs", b"x"),
        file("trials.jsonl/x", b"x"),
    ];
    let left_out = target.unpack(&parts).unwrap();
    assert_eq!(left_out, ["lost+found/x", ".bashrc", "logs", "trials.jsonl/x"].map(PathBuf::from));
    assert_eq!((target.read(&long), target.read("summary.json")), ("log".to_owned(), "{}".to_owned()));
    assert_eq!(fs::read_dir(target.folder()).unwrap().count(), 2);
}

#[test]
fn links_and_devices_are_refused() {
    for (entry_type, kind) in [
        (EntryType::Symlink, "Symlink"),
        (EntryType::Link, "Link"),
        (EntryType::Char, "Char"),
        (EntryType::Block, "Block"),
        (EntryType::Fifo, "Fifo"),
        (EntryType::GNUSparse, "GNUSparse"),
        (EntryType::XHeader, "XHeader"),
    ] {
        let link = entry("summary.json", entry_type, "../bashrc", b"");
        assert_refused(&[link, file("summary.json", b"theirs")], &format!("is of the kind {kind}"));
    }
    assert_refused(
        &[entry("logs", EntryType::Symlink, "..", b""), file("logs/bashrc", b"theirs")],
        "Symlink",
    );
}

#[test]
fn paths_out_of_the_folder_are_refused() {
    for name in ["../bashrc", "logs/../../bashrc", "/bashrc", "logs/.."] {
        assert_refused(&[file(name, b"theirs")], "leads out of the folder");
    }
    let long = format!("{}../bashrc", "./".repeat(100));
    let parts = [entry("x", EntryType::GNULongName, "", long.as_bytes()), file("x", b"theirs")];
    assert_refused(&parts, "leads out of the folder");
}

#[test]
fn files_in_it_twice_are_refused() {
    assert_refused(&[file("summary.json", b"1"), file("./summary.json", b"2")], "is in it twice");
    // A link that is in the folder already is not followed either.
    let target = Target::new();
    symlink("../bashrc", target.folder().join("summary.json")).unwrap();
    assert!(target.unpack(&[file("summary.json", b"theirs")]).unwrap_err().contains("twice"));
    assert_eq!(fs::read_to_string(target.root.path().join("bashrc")).unwrap(), "mine");
}

#[test]
fn sizes_are_limited() {
    let mut huge = Header::new_gnu();
    huge.set_path("summary.json").unwrap();
    huge.set_size(1 << 60);
    huge.set_cksum();
    assert_refused(&[huge.as_bytes().to_vec(), vec![1; 4096]], "exceeds");
    let mut name = Header::new_gnu();
    name.set_path("x").unwrap();
    name.set_entry_type(EntryType::GNULongName);
    name.set_size(1 << 40);
    name.set_cksum();
    assert_refused(&[name.as_bytes().to_vec(), vec![b'a'; 64 << 10]], "no file can have");
}

#[test]
fn truncated_archives_are_refused() {
    let whole = file("summary.json", &[b'x'; 2000]);
    for length in [100, 512, 1000] {
        let target = Target::new();
        assert!(unpack(&whole[..length], &target.folder(), NAMES).is_err(), "{length}");
    }
}

/// Fails after some bytes.
struct Breaking<'a>(&'a [u8]);

impl Read for Breaking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::ConnectionReset.into()),
            length => Ok(length),
        }
    }
}

#[test]
fn broken_connections_are_resumed_where_they_broke() {
    let mut archive = Builder::new(Vec::new());
    let content: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut header = Header::new_gnu();
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, "trials.jsonl", &content[..]).unwrap();
    let archive = archive.into_inner().unwrap();
    let opened = RefCell::new(Vec::new());
    let open = |from: u64| -> io::Result<Box<dyn Read + '_>> {
        opened.borrow_mut().push(from);
        let (begin, end) = (from as usize, (from as usize + 90_000).min(archive.len()));
        match opened.borrow().len() {
            2 => Err(io::ErrorKind::ConnectionRefused.into()),
            _ if end < archive.len() => Ok(Box::new(Breaking(&archive[begin..end]))),
            _ => Ok(Box::new(&archive[begin..end])),
        }
    };
    let target = Target::new();
    unpack(Resumed::new(&open, &|| false), &target.folder(), NAMES).unwrap();
    assert_eq!(fs::read(target.folder().join("trials.jsonl")).unwrap(), content);
    assert_eq!(*opened.borrow(), [0, 90_000, 90_000, 180_000]);
}

#[test]
fn stopped_copies_end() {
    let open = |_: u64| -> io::Result<io::Repeat> { Ok(io::repeat(0)) };
    let error = Resumed::new(&open, &|| true).read(&mut [0]).unwrap_err();
    assert!(error.to_string().contains("kept in the cluster"), "{error}");
}
