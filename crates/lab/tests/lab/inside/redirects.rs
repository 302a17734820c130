//! Traffic sent through a proxy: the proxy sees the original destination, and its own traffic does not come
//! back to it.

use super::pods::{answer_once, ask};
use super::{OrFail as _, Test};
use crate::ensure;
use crate::roles::{TEST_TIMEOUT, program, proxy_connection};
use lab::redirect::{INBOUND_PORT, OUTBOUND_PORT, Redirect};
use lab::{ContainerUser, Lab, Pod, PodSpec};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::thread::JoinHandle;

pub const TESTS: &[Test] = &[
    ("outbound_connections_go_to_the_proxy", outbound),
    ("proxy_connections_are_not_redirected", proxy_is_exempt),
    ("inbound_connections_go_to_the_proxy", inbound),
];

/// Acts as the proxy: tells the first client its original destination.
fn proxy_once(pod: &Pod, port: u16) -> Result<JoinHandle<SocketAddrV4>, String> {
    let listener = pod.run(move || TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))).or_fail()?.or_fail()?;
    Ok(std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let wanted = rustix::net::sockopt::ip_original_dst(&stream).expect("it was redirected");
        stream.write_all(b"by proxy").expect("the client reads");
        wanted
    }))
}

fn outbound(lab: &Lab) -> Result<(), String> {
    let client = lab.create_pod(&PodSpec::new("client")).or_fail()?;
    let server = lab.create_pod(&PodSpec::new("server")).or_fail()?;
    client.redirect(&Redirect { outbound: true, ..Redirect::default() }).or_fail()?;
    let proxy = proxy_once(&client, OUTBOUND_PORT)?;
    // Nothing listens at the server: only the proxy can have answered.
    ensure(ask(&client, (server.address(), 8080))? == "by proxy", "another answer")?;
    let wanted = proxy.join().map_err(|_| "the proxy panicked")?;
    ensure(wanted == SocketAddrV4::new(server.address(), 8080), format!("the proxy saw {wanted}"))?;
    let answered = answer_once(&client, 8081, "myself")?;
    ensure(ask(&client, (Ipv4Addr::LOCALHOST, 8081))? == "myself", "loopback was redirected")?;
    answered.join().map(drop).map_err(|_| "the server panicked".to_owned())
}

fn proxy_is_exempt(lab: &Lab) -> Result<(), String> {
    let mut client = lab.create_pod(&PodSpec::new("client")).or_fail()?;
    let server = lab.create_pod(&PodSpec::new("server")).or_fail()?;
    client.redirect(&Redirect { outbound: true, ..Redirect::default() }).or_fail()?;
    let answered = answer_once(&server, 8080, "by server")?;
    let arguments = proxy_connection(lab.proxy_identity(), (server.address(), 8080).into());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = client.start(&program(lab, "proxy", ContainerUser::Proxy, &arguments)).or_fail()?;
    let status = proxy.wait(TEST_TIMEOUT).ok_or("it does not end")?;
    ensure(status.success(), format!("it ended with {status}: {:?}", proxy.log_tail(3)))?;
    ensure(proxy.log_tail(1) == ["by server"], format!("{:?}", proxy.log_tail(3)))?;
    answered.join().map(drop).map_err(|_| "the server panicked".to_owned())
}

fn inbound(lab: &Lab) -> Result<(), String> {
    let client = lab.create_pod(&PodSpec::new("client")).or_fail()?;
    let server = lab.create_pod(&PodSpec::new("server")).or_fail()?;
    server.redirect(&Redirect { inbound_ports: vec![8080], ..Redirect::default() }).or_fail()?;
    let proxy = proxy_once(&server, INBOUND_PORT)?;
    let application = answer_once(&server, 8080, "by application")?;
    ensure(ask(&client, (server.address(), 8080))? == "by proxy", "another answer")?;
    let wanted = proxy.join().map_err(|_| "the proxy panicked")?;
    ensure(wanted == SocketAddrV4::new(server.address(), 8080), format!("the proxy saw {wanted}"))?;
    // The proxy connects on loopback, which is not redirected; nor is any other port.
    ensure(ask(&server, (Ipv4Addr::LOCALHOST, 8080))? == "by application", "loopback was redirected")?;
    application.join().map_err(|_| "the application panicked")?;
    let other = answer_once(&server, 9090, "other port")?;
    ensure(ask(&client, (server.address(), 9090))? == "other port", "another port was redirected")?;
    other.join().map(drop).map_err(|_| "the server panicked".to_owned())
}
