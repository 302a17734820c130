use super::*;

fn layer(entries: &[(&str, Kind)]) -> LayerEntries {
    let mut layer = LayerEntries::default();
    for (path, kind) in entries {
        layer.insert(Entry { path: (*path).to_owned(), kind: kind.clone() });
    }
    layer
}

const FILE: Kind = Kind::File { size: 1 };

fn symlink(target: &str) -> Kind {
    Kind::Symlink(target.to_owned())
}

/// A view of these layers, top layer first; the last one has index 0.
fn view(layers: &[&[(&str, Kind)]]) -> View {
    let mut view = View::default();
    for (number, entries) in layers.iter().enumerate() {
        view.merge(layers.len() - 1 - number, &layer(entries));
    }
    view
}

fn file(layer: usize, source: &str) -> Resolution {
    Resolution::File { layer, source: source.to_owned() }
}

fn absent(resolution: &Resolution) -> bool {
    matches!(resolution, Resolution::Absent(_))
}

#[test]
fn file_of_upper_layer_wins() {
    let view = view(&[&[("a/b", FILE)], &[("a/b", FILE), ("a/c", FILE)]]);
    assert_eq!(view.resolve("/a/b", true), file(1, "a/b"));
    assert_eq!(view.resolve("a//c", true), file(0, "a/c"));
}

#[test]
fn path_is_pending_until_layer_has_or_hides_it() {
    let upper = view(&[&[("a/x", FILE), ("b/.wh.c", FILE), ("d/.wh..wh..opq", FILE), ("e", FILE)]]);
    assert_eq!(upper.resolve("/a/b", false), Resolution::Pending { path: "a/b".to_owned() });
    assert!(absent(&upper.resolve("/a/b", true)));
    for hidden in ["/b/c", "/b/c/deeper", "/d/any", "/e/below", "/a"] {
        let resolution = upper.resolve(hidden, hidden == "/a");
        assert!(absent(&resolution), "{hidden}: {resolution:?}");
    }
}

#[test]
fn whiteouts_hide_only_lower_layers() {
    let view = view(&[
        &[("a/.wh.b", FILE), ("a/b", FILE), ("o/.wh..wh..opq", FILE), ("o/new", FILE)],
        &[("a/b", FILE), ("o/old", FILE), ("o", Kind::Directory)],
    ]);
    assert_eq!(view.resolve("/a/b", true), file(1, "a/b"));
    assert_eq!(view.resolve("/o/new", true), file(1, "o/new"));
    assert!(absent(&view.resolve("/o/old", true)));
    let parent = super::tests::view(&[&[(".wh.usr", FILE)], &[("usr/bin/x", FILE)]]);
    assert!(absent(&parent.resolve("/usr/bin/x", true)));
}

#[test]
fn union_file_system_marks_are_not_files() {
    let view = view(&[
        &[(".wh..wh.plnk", Kind::Directory), (".wh..wh.aufs", FILE)],
        &[(".wh.plnk", FILE), ("a", FILE)],
    ]);
    assert_eq!(view.resolve("/a", true), file(0, "a"));
    assert!(absent(&view.resolve("/.wh..wh.aufs", true)));
}

#[test]
fn symbolic_links_are_followed_within_the_image() {
    let view = view(&[
        &[("bin", symlink("usr/bin")), ("usr/bin/a", symlink("../lib/a"))],
        &[("usr/lib/a", symlink("/opt/a")), ("opt/a", FILE)],
    ]);
    assert_eq!(view.resolve("/bin/a", true), file(0, "opt/a"));
    assert_eq!(view.resolve("/bin/b", false), Resolution::Pending { path: "usr/bin/b".to_owned() });
}

#[test]
fn links_out_of_image_and_link_loops_are_hostile() {
    let view = view(&[&[
        ("a", symlink("../etc/passwd")),
        ("b/c", symlink("../../../x")),
        ("loop", symlink("loop")),
        ("one", symlink("/two/x")),
        ("two", symlink("/one")),
        ("device", Kind::Special("device")),
        ("hard", Kind::HardLink("nothing".to_owned())),
    ]]);
    for path in ["/a", "/b/c", "/loop", "/one", "/device", "/hard"] {
        assert!(matches!(view.resolve(path, false), Resolution::Hostile(_)), "{path}");
    }
}

#[test]
fn hard_links_resolve_within_their_layer() {
    let view = view(&[
        &[(".wh.x", FILE)],
        &[
            ("link", Kind::HardLink("second".to_owned())),
            ("second", Kind::HardLink("x".to_owned())),
            ("x", FILE),
        ],
    ]);
    assert_eq!(view.resolve("/link", true), file(0, "x"));
    assert!(absent(&view.resolve("/x", true)));
}

#[test]
fn file_in_place_of_directory_hides_its_contents() {
    let view = view(&[&[("a", FILE), ("b", symlink("c"))], &[("a/x", FILE), ("b/x", FILE), ("c/x", FILE)]]);
    assert!(absent(&view.resolve("/a/x", true)));
    assert_eq!(view.resolve("/b/x", true), file(0, "c/x"));
    let directory = super::tests::view(&[&[("a", Kind::Directory)], &[("a", FILE)]]);
    assert!(absent(&directory.resolve("/a", true)));
}
