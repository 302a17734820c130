//! Recordings of all formats, and files that are none.

use super::*;
use std::io::BufReader;

fn read(text: impl AsRef<[u8]>) -> Result<Recording, RecordingError> {
    // Lines are longer than a buffer.
    Recording::read(BufReader::with_capacity(7, text.as_ref()), 1)
}

/// Instants in milliseconds.
fn instants_ms(recording: &Recording) -> Vec<f64> {
    recording.instants.iter().map(|instant| *instant as f64 / 1e6).collect()
}

/// Instants in whole milliseconds, over which requests are spread.
fn whole_ms(recording: &Recording) -> Vec<u64> {
    recording.instants.iter().map(|instant| instant / MILLISECOND).collect()
}

/// Methods and paths, in order of time.
fn requests(recording: &Recording) -> Vec<String> {
    let requests = recording.requests.as_ref().expect("it has requests");
    let text = |row: &u32| {
        let (method, _) = &requests.methods[usize::from(requests.choices[*row as usize])];
        format!("{method} {}", String::from_utf8_lossy(requests.paths.get(u64::from(*row))))
    };
    requests.rows.iter().map(text).collect()
}

#[test]
fn instants_are_seconds_or_rfc_3339_since_the_first() {
    let text = "# seconds\n\n1700000000.25\n1700000000.250000001\r\n  1700000002\n1700000000.5\n";
    let recording = read(text).unwrap();
    assert_eq!(recording.instants, [0, 1, 250_000_000, 1_750_000_000]);
    assert_eq!((recording.format, recording.out_of_order), (RecordingFormat::Instants, 1));
    assert_eq!(recording.length, Duration::from_nanos(1_750_000_000 + 1_750_000_000 / 3));
    assert!(recording.requests.is_none());
    // Milliseconds, microseconds and nanoseconds since the epoch.
    let units = "1700000000\n1700000000250\n1700000000250.5\n1700000001000000\n1700000001000000001\n";
    let recording = read(units).unwrap();
    assert_eq!(recording.instants, [0, 250_000_000, 250_500_000, 1_000_000_000, 1_000_000_001]);
    let recording = read("2024-02-29T23:59:59.5Z\n2024-03-01T01:00:00+01:00\n").unwrap();
    assert_eq!(instants_ms(&recording), [0.0, 500.0]);
    // A negative number is before zero, and no number is beyond what 64 bits hold.
    assert_eq!(
        instants_ms(&read("-0.5\n-.25\n1e3\n-0.25\n0\n0.25\n99999999999999").unwrap()),
        [0.0, 250.0, 500.0, 750.0]
    );
    assert_eq!(read("7").unwrap().length, Duration::from_secs(1));
    assert_eq!(read("0\n0.0000001").unwrap().length, Duration::from_nanos(1_000_100));
}

#[test]
fn envoy_logs_are_read_as_text_and_json() {
    let text = r#"[2024-01-01T00:00:00.020Z] "POST /cart?id=7 HTTP/2" 200 - via_upstream - "-" 12 0 3 2 "-" "curl/8" "a" "shop" "10.0.0.1:80"
[2024-01-01 00:00:00.000][1][info][main] initializing epoch 0
[2024-01-01T00:00:00.000Z] "GET /a HTTP/1.1" 200
[2024-01-01T00:00:00.030Z] "- - -" 0 NR
[2024-01-01T00:00:00.040Z] "CONNECT a:443 HTTP/1.1" 200
[2024-01-01T00:00:00.050Z] "GET https://a.example?x HTTP/1.1" 200
"#;
    let recording = read(text).unwrap();
    assert_eq!(requests(&recording), ["GET /a", "POST /cart?id=7", "GET /?x"]);
    assert_eq!(whole_ms(&recording), [0, 20, 50]);
    assert!(recording.instants[1] != 20 * MILLISECOND);
    // Times with more digits are exact.
    let exact = text.replace(".050Z", ".050001Z");
    assert_eq!(instants_ms(&read(exact).unwrap()), [0.0, 20.0, 50.001]);
    assert_eq!((recording.ignored, recording.first_ignored, recording.out_of_order), (3, 2, 1));
    let json = r#"
{"authority":"shop","method":"GET","path":"/a b","response_code":200,"start_time":"2024-01-01T00:00:00.001Z","duration":null}
{"method":null,"path":null,"start_time":"2024-01-01T00:00:00.002Z"}
[2024-01-01T00:00:00.000Z] "GET /another-format HTTP/1.1" 200
{"start_time":"2024-01-01T00:00:00.003Z","method":"DELETE","path":"/é\"{1..2}"}
"#;
    let recording = read(json).unwrap();
    assert_eq!(requests(&recording), ["GET /a%20b", "DELETE /%C3%A9%22%7B1..2%7D"]);
    assert_eq!((recording.ignored, recording.first_ignored), (2, 3));
}

#[test]
fn lines_of_one_second_are_spread_over_it_in_their_order() {
    let line = |second: u64, path: &str| {
        format!(
            "10.0.0.1 - ada [10/Oct/2023:13:55:{second:02} -0700] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"a [b] \\\"c\\\"\"\n"
        )
    };
    let lines: Vec<String> = (0..50).map(|number| line(number / 10 + 3, &format!("/{number}"))).collect();
    let recording = read(lines.concat()).unwrap();
    assert_eq!(recording.format, RecordingFormat::CommonLog);
    assert_eq!(requests(&recording), (0..50).map(|number| format!("GET /{number}")).collect::<Vec<_>>());
    assert!(recording.instants.is_sorted());
    for (second, instants) in recording.instants.chunks(10).enumerate() {
        assert!(instants.iter().all(|instant| instant / SECOND == second as u64), "{instants:?}");
        assert!(instants[9] - instants[0] > SECOND / 10, "they are spread: {instants:?}");
    }
    assert_eq!(recording.length, Duration::from_secs(5));
    let other = Recording::read(lines.concat().as_bytes(), 2).unwrap();
    assert_ne!(other.instants, recording.instants, "the seed decides");
    let escaped =
        read(line(3, r"/\x22\xE9\\?\xzz") + &line(3, r"/\x22\xE9\\") + &line(3, "http://h/p#f")).unwrap();
    assert_eq!(requests(&escaped), ["GET /%22%E9%5C", "GET /p"]);
    // As Apache writes control characters, and nginx.
    let escaped = read(line(3, r"/a\tb\vc\\td") + &line(4, r"/\x09\x0B")).unwrap();
    assert_eq!(requests(&escaped), ["GET /a%09b%0Bc%5Ctd", "GET /%09%0B"]);
    // 09:30 in India is 04:00 in UTC.
    let zones = "a - - [01/Jan/2024:09:30:01 +0530] \"GET / HTTP/1.0\" 200 1\n\
                 a - - [01/Jan/2024:04:00:00 +0000] \"GET /x HTTP/1.0\" 200 1\n";
    assert_eq!(requests(&read(zones).unwrap()), ["GET /x", "GET /"]);
}

#[test]
fn har_has_its_entries_and_nothing_else_of_them() {
    let entry = |started: &str, method: &str, url: &str| {
        format!(
            r#"{{"startedDateTime": "{started}", "time": 3.5, "request": {{"method": "{method}", "url": "{url}", "headers":
            [{{"name": "Cookie", "value": "secret"}}]}}, "response": {{"content": {{"text": "log"}}}}}}"#
        )
    };
    let entries = [
        entry("2024-01-01T00:00:00.100+00:00", "GET", "https://a.example/x?y=z#part"),
        entry("2024-01-01T00:00:00.000Z", "PUT", "http://b.example"),
        entry("yesterday", "GET", "https://a.example/"),
        r#"{"pageref": "1"}"#.to_owned(),
    ];
    let har =
        format!("\u{feff}{{ \"log\" :\n {{\"version\": \"1.2\", \"entries\": [{}]}}}}", entries.join(","));
    let recording = read(&har).unwrap();
    assert_eq!(requests(&recording), ["PUT /", "GET /x?y=z"]);
    assert_eq!((recording.ignored, recording.first_ignored, recording.out_of_order), (2, 3, 1));
    assert_eq!(whole_ms(&recording), [0, 100]);
    assert!(!format!("{recording:?}").contains("secret"));
    // A file that was cut.
    assert!(matches!(read(&har[..har.len() - 1]), Err(RecordingError::Har(_))));
    assert!(matches!(read("{\"log\": {\"entries\": []}}"), Err(RecordingError::Empty)));
}

#[test]
fn files_without_requests_are_errors() {
    for text in ["", "\n\n", "# only a comment\n"] {
        assert!(matches!(read(text), Err(RecordingError::Empty)), "{text:?}");
    }
    assert!(matches!(read("\nhello\nworld\n"), Err(RecordingError::NotUnderstood(2))));
    let binary: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    assert!(matches!(read(binary), Err(RecordingError::NotUnderstood(_))));
    assert!(matches!(
        read("words\n1\nmore words\n"),
        Err(RecordingError::FewInstants { understood: 1, ignored: 2, first: 1 })
    ));
    assert!(matches!(read(b"\x1f\x8b\x08\n0\n"), Err(RecordingError::Compressed)));
    // A device has no end, and a long line of something that is not one is left out.
    let endless = std::io::BufReader::new(std::io::repeat(b'0'));
    assert!(matches!(Recording::read(endless, 1), Err(RecordingError::NotUnderstood(1))));
    let long = "1\n".to_owned() + &"2".repeat(MAX_LINE_BYTES + 1) + "\n3\n";
    let recording = read(long).unwrap();
    assert_eq!((recording.instants.len(), recording.ignored, recording.first_ignored), (2, 1, 2));
}

#[test]
fn speed_divides_times() {
    let recording = read("0\n1\n4\n").unwrap().at_speed(4.0);
    assert_eq!(instants_ms(&recording), [0.0, 250.0, 1000.0]);
    assert_eq!(recording.length, Duration::from_millis(1250));
    assert_eq!(instants_ms(&read("0\n1\n").unwrap().at_speed(0.5)), [0.0, 2000.0]);
}
