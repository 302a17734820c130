use super::*;

/// All that is read of bytes in pieces of this size, with the content of messages.
fn read(sender: Sender, bytes: &[u8], piece: usize) -> Result<(Vec<Received>, Vec<u8>), Fault> {
    let mut reader = FrameReader::new(sender, 1 << 20);
    let (mut all, mut content) = (Vec::new(), Vec::new());
    for mut part in bytes.chunks(piece) {
        while !part.is_empty() {
            let (taken, received) = reader.read(part, Some(&mut content))?;
            part = &part[taken..];
            match received {
                Received::More => assert!(part.is_empty()),
                other => all.push(other),
            }
            if received == Received::Ping {
                content.extend_from_slice(reader.control());
            }
        }
    }
    Ok((all, content))
}

#[test]
fn frames_are_read_as_written_in_any_pieces() {
    for (sender, mask) in [(Sender::Server, None), (Sender::Client, Some([1, 0x55, 0xfe, 9]))] {
        let (mut bytes, mut whole, mut contents) = (Vec::new(), Vec::new(), Vec::new());
        for length in [0_usize, 1, 125, 126, 300, 65_535, 65_536] {
            let content: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            let before = bytes.len();
            write_frame(&mut bytes, Opcode::Binary, &content, mask);
            whole.push(Received::Message {
                opcode: Opcode::Binary,
                content_bytes: length as u64,
                frame_bytes: (bytes.len() - before) as u64,
            });
            contents.extend_from_slice(&content);
        }
        write_frame(&mut bytes, Opcode::Ping, b"beat", mask);
        write_close(&mut bytes, Some(1000), mask);
        write_close(&mut bytes, None, mask);
        contents.extend_from_slice(b"beat");
        whole.extend([Received::Ping, Received::Close(Some(1000)), Received::Close(None)]);
        for piece in [1, 2, 3, 5, 7, 127, 4096, bytes.len()] {
            assert_eq!(read(sender, &bytes, piece), Ok((whole.clone(), contents.clone())), "{piece}");
        }
    }
}

#[test]
fn control_frames_between_parts_are_no_part_of_the_message() {
    // The examples of RFC 6455, 5.7, with a ping between the parts.
    let bytes = b"\x01\x03Hel\x89\x05Hello\x80\x02lo\x8a\x00";
    let message = Received::Message { opcode: Opcode::Text, content_bytes: 5, frame_bytes: 9 };
    for piece in 1..=bytes.len() {
        let (all, _) = read(Sender::Server, bytes, piece).unwrap();
        assert_eq!(all, [Received::Ping, message, Received::Pong], "{piece}");
    }
    let masked = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    assert_eq!(read(Sender::Client, masked, 3).unwrap().1, b"Hello");
}

#[test]
fn frames_against_the_rules_are_refused() {
    let too_large = [&b"\x82\x7f"[..], &(1_u64 << 30).to_be_bytes()].concat();
    let top_bit = [&b"\x82\x7f"[..], &(1_u64 << 63).to_be_bytes()].concat();
    for (bytes, fault) in [
        (&b"\xc1\x00"[..], Fault::Protocol),
        (b"\x83\x00", Fault::Protocol),
        (b"\x8b\x00", Fault::Protocol),
        (b"\x81\x80\x00\x00\x00\x00", Fault::Protocol),
        (b"\x80\x00", Fault::Protocol),
        (b"\x01\x00\x81\x00", Fault::Protocol),
        (b"\x09\x00", Fault::Protocol),
        (b"\x89\x7e\x00\x7e", Fault::Protocol),
        (b"\x81\x7e\x00\x7d", Fault::Protocol),
        (b"\x81\x7f\x00\x00\x00\x00\x00\x00\xff\xff", Fault::Protocol),
        (b"\x88\x01\x03", Fault::Protocol),
        // No peer may send 1005, and none has registered 2000.
        (b"\x88\x02\x03\xed", Fault::Protocol),
        (b"\x88\x02\x07\xd0", Fault::Protocol),
        (b"\x88\x03\x03\xe8\xff", Fault::Protocol),
        (&top_bit, Fault::Protocol),
        (&too_large, Fault::TooLarge),
    ] {
        for piece in 1..=bytes.len() {
            assert_eq!(read(Sender::Server, bytes, piece), Err(fault), "{bytes:x?}");
        }
    }
    assert_eq!(read(Sender::Client, b"\x81\x01x", 1), Err(Fault::Protocol));
    // Parts count together.
    let part = [&b"\x02\x7f"[..], &(1_u64 << 19).to_be_bytes(), &vec![0; 1 << 19]].concat();
    let rest = [&b"\x80\x7f"[..], &((1_u64 << 19) + 1).to_be_bytes()].concat();
    assert_eq!(read(Sender::Server, &[part, rest].concat(), 4096), Err(Fault::TooLarge));
}
