//! Published figures relative to another mode.

use crate::definition::Experiment;
use crate::published::{ReferenceValue, Relation, RelativeQuantity};
use results::Mode;

#[test]
fn published_figures_may_be_relative_to_another_mode() {
    let text = |figure: &str| {
        format!(
            "name: t\nmesh: istio\nmodes: [egress-bypass, egress-sni]\nload: {{clients: 20}}\n\
             published:\n  - source: a study\n    figures:\n      - {figure}\n"
        )
    };
    for (written, relation) in [
        ("-24%", Relation::Change(-0.24)),
        ("+12.5%", Relation::Change(0.125)),
        ("alike", Relation::Alike),
        ("higher", Relation::Higher),
        ("lower", Relation::Lower),
    ] {
        let figure = format!(
            "{{figure: throughput, mode: egress-sni, to: egress-bypass, clients: 20, value: {written}}}"
        );
        let experiment =
            Experiment::parse(&text(&figure), "t").unwrap_or_else(|e| panic!("{}", e.render(false)));
        let read = &experiment.published[0].figures[0];
        assert_eq!(read.clients, Some(20));
        assert_eq!(
            read.value,
            ReferenceValue::Relative(RelativeQuantity::Throughput, Mode::EgressBypass, relation)
        );
        let again = Experiment::parse(&experiment.to_yaml(), "written").unwrap();
        assert_eq!(again.published, experiment.published);
    }
    for (figure, said) in [
        ("{figure: throughput, mode: egress-sni, value: -24%}", "`-24%` is not a rate"),
        (
            "{figure: throughput, mode: egress-sni, to: none, value: -24%}",
            "`egress-sni` is not compared with `none`",
        ),
        ("{figure: cpu, mode: egress-sni, to: egress-sni, value: alike}", "is not compared with"),
        (
            "{figure: memory, mode: egress-sni, to: egress-bypass, value: alike}",
            "this figure is not relative",
        ),
        ("{figure: cpu, mode: egress-sni, to: egress-bypass, value: 0.24}", "is not a change"),
        ("{figure: cpu, mode: egress-sni, to: egress-bypass, value: -101%}", "nothing left"),
        (
            "{figure: cpu, mode: egress-sni, to: egress-bypass, component: sni-proxy, value: alike}",
            "`cpu` here is of no component",
        ),
    ] {
        let error = Experiment::parse(&text(figure), "t").unwrap_err().render(false);
        assert!(error.contains(said), "{figure}: {error}");
    }
}
