//! The calls of `meshmeter` in a line of shell, whatever runs them. Only as much of the language as texts use.

/// Words before a command that change nothing about it.
const KEYWORDS: [&str; 10] = ["do", "then", "else", "if", "elif", "while", "until", "!", "{", "$"];
/// Programs that run the command after their options.
const WRAPPERS: [&str; 9] = ["sudo", "nohup", "time", "exec", "env", "command", "nice", "timeout", "taskset"];
/// Their options with a value of its own.
const OPTIONS_WITH_VALUE: [&str; 5] = ["-u", "-g", "-n", "-c", "-s"];
/// Programs that run the command after `--`.
const REMOTE: [&str; 3] = ["kubectl", "docker", "podman"];

/// Between the columns of a table, which may have the program's name.
const TABLE_GAP: &str = "   ";

/// Arguments of each call.
pub fn calls(line: &str) -> Vec<String> {
    let (line, inner) = without_substitutions(line);
    let outer = simple_commands(without_comment(&line)).into_iter().filter_map(|command| {
        // Messages end with a command.
        arguments(&command).or_else(|| arguments(command.rsplit_once(": ")?.1))
    });
    inner.iter().flat_map(|command| calls(command)).chain(outer.collect::<Vec<_>>()).collect()
}

/// Arguments of `meshmeter`, if the text is such a command. What follows the name must look like a verb or an option.
fn arguments(text: &str) -> Option<String> {
    let mut rest = text.trim();
    loop {
        let (word, after) = first_word(rest)?;
        rest = if word == "meshmeter" || word.ends_with("/meshmeter") {
            let is_column = rest[word.len()..].starts_with(TABLE_GAP);
            return if is_column { None } else { after_program(after) };
        } else if word == "cargo" || word == "$(CARGO)" {
            return after_cargo(after);
        } else if KEYWORDS.contains(&word) || is_assignment(word) {
            after
        } else if WRAPPERS.contains(&word) {
            without_options(after)
        } else if REMOTE.contains(&word) {
            after.split_once(" -- ")?.1
        } else {
            return None;
        };
    }
}

/// A word and the text after it.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let (word, after) = text.split_once(char::is_whitespace)?;
    Some((word, after.trim_start()))
}

fn after_program(arguments: &str) -> Option<String> {
    let arguments = without_redirections(arguments);
    let first = arguments.split(' ').next()?;
    let is_verb = !first.is_empty()
        && first.chars().all(|character| character.is_ascii_lowercase() || character == '-');
    is_verb.then_some(arguments)
}

/// Arguments after `cargo run … --`, unless it runs another program.
fn after_cargo(arguments: &str) -> Option<String> {
    let (options, arguments) = arguments.strip_prefix("run ")?.split_once("-- ")?;
    let options: Vec<_> = options.split_whitespace().collect();
    let names_another = options.windows(2).any(|pair| {
        pair[0] == "--example" || ["-p", "--package", "--bin"].contains(&pair[0]) && pair[1] != "meshmeter"
    });
    if names_another { None } else { after_program(arguments) }
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|character| character.is_ascii_uppercase() || character == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// A wrapper's command, after its options, their values and numbers such as a time.
fn without_options(mut text: &str) -> &str {
    while let Some((word, after)) = first_word(text) {
        if !word.starts_with('-') && !word.starts_with(|character: char| character.is_ascii_digit()) {
            break;
        }
        let value = first_word(after).filter(|_| OPTIONS_WITH_VALUE.contains(&word));
        text = value.map_or(after, |(_, after)| after);
    }
    text
}

/// Words with single spaces, without redirections. A placeholder may be in angle brackets: `<file>`.
fn without_redirections(arguments: &str) -> String {
    let mut kept = Vec::new();
    let mut words = arguments.split_whitespace();
    while let Some(word) = words.next() {
        let operator = word.trim_start_matches(|character: char| character.is_ascii_digit());
        let is_placeholder = operator.starts_with('<') && operator.ends_with('>');
        if is_placeholder || !operator.starts_with(['<', '>']) {
            kept.push(word);
        } else if operator.chars().all(|character| ['<', '>'].contains(&character)) {
            words.next();
        }
    }
    kept.join(" ")
}

fn without_comment(line: &str) -> &str {
    ["  #", " # "].iter().fold(line, |line, start| line.split(start).next().unwrap_or_default())
}

/// A line with `1` for each `$(…)`, and their commands.
fn without_substitutions(line: &str) -> (String, Vec<String>) {
    let Some((before, rest)) = line.split_once("$(") else { return (line.to_owned(), Vec::new()) };
    let mut depth = 1;
    let end = rest.find(|character| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    let Some(end) = end else { return (line.to_owned(), Vec::new()) };
    // A variable of make.
    let is_name = rest[..end].chars().all(|character| character.is_ascii_uppercase() || character == '_');
    let value = if is_name { format!("$({})", &rest[..end]) } else { "1".to_owned() };
    let (after, mut commands) = without_substitutions(&rest[end + 1..]);
    commands.extend((!is_name).then(|| rest[..end].to_owned()));
    (format!("{before}{value}{after}"), commands)
}

/// Commands of a line, apart from what joins them. An apostrophe that nothing closes is one of prose.
fn simple_commands(line: &str) -> Vec<String> {
    let (mut commands, mut quote, mut previous) = (vec![String::new()], None, ' ');
    for (place, character) in line.char_indices() {
        let starts_word = previous.is_whitespace();
        let separates = match character {
            ';' => true,
            '|' | '&' => starts_word || ['|', '&'].contains(&previous),
            '(' => starts_word,
            ')' => !line[..place].contains("$("),
            _ => false,
        };
        match (character, quote) {
            ('\'' | '"', None) if line[place + 1..].contains(character) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            _ => {}
        }
        if separates && quote.is_none() {
            commands.push(String::new());
        } else {
            commands.last_mut().expect("there is one").push(character);
        }
        previous = character;
    }
    commands
}

#[test]
fn calls_are_found_whatever_runs_them() {
    let same = [
        "meshmeter run x",
        "$ meshmeter  run x",
        "sudo -E meshmeter run x",
        "sudo -u tester meshmeter run x",
        "LEVEL=1 meshmeter run x",
        "env LEVEL=1 ./target/release/meshmeter run x",
        "target/demo/meshmeter run x >log 2>&1 &",
        "cd /tmp; meshmeter run x",
        "true && (meshmeter run x)",
        "for seed in 1 2; do meshmeter run x; done",
        "id=$(meshmeter run x)",
        "echo \"$(meshmeter run x)\"",
        "nohup meshmeter run x > log",
        "timeout 10s taskset -c 0 meshmeter run x  # why",
        "cargo run --release -- run x",
        "kubectl exec --stdin pod -- meshmeter run x",
        "it is missing: meshmeter run x",
    ];
    for line in same {
        assert_eq!(calls(line), ["run x"], "{line}");
    }
    let others = [
        "cp target/release/meshmeter /usr/local/bin",
        "kubectl -n meshmeter get pods",
        "cargo run -p meshmeter-load --example x -- run x",
        "meshmeter 0.1.0 (x86-64)",
        "meshmeter      the command",
    ];
    for line in others {
        assert!(calls(line).is_empty(), "{line}");
    }
}
