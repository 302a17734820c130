//! Cookies of a session (RFC 6265), as far as one host needs them: names and values, `Path`, and what removes them.
//!
//! Without `Path` a cookie is sent with all requests of its session. `Expires` counts only in 1970, as servers write it to remove a
//! cookie, and `Max-Age` only up to 0: other lifetimes are longer than sessions. `Secure`, `HttpOnly` and `SameSite` have no effect.

use crate::protocol::KeptField;

/// Maximum number of cookies of a session.
const MAX_COOKIES: usize = 50;
/// Maximum size of a cookie with its name, bytes.
const MAX_COOKIE_BYTES: usize = 4096;

/// The cookies of a session.
#[derive(Debug, Default)]
pub(crate) struct CookieJar(Vec<Cookie>);

#[derive(Debug)]
struct Cookie {
    name: Box<[u8]>,
    value: Box<[u8]>,
    path: Box<[u8]>,
}

impl CookieJar {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the cookies of a response from `host`.
    pub(crate) fn receive(&mut self, fields: &[KeptField], host: &str) {
        for (_, value) in fields.iter().filter(|(name, _)| **name == *b"set-cookie") {
            self.set(value, host);
        }
    }

    fn set(&mut self, text: &[u8], host: &str) {
        let mut parts = text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let Some((name, value)) = parts.next().and_then(pair) else { return };
        if name.is_empty() || name.len() + value.len() > MAX_COOKIE_BYTES {
            return;
        }
        let (mut path, mut is_removed): (&[u8], bool) = (b"/", false);
        for part in parts {
            let (key, value) = pair(part).unwrap_or((part, b""));
            match key.to_ascii_lowercase().as_slice() {
                b"path" if value.starts_with(b"/") => path = value,
                b"domain" if !has_host(value, host) => return,
                b"max-age" => is_removed |= value.starts_with(b"-") || value == b"0",
                b"expires" => is_removed |= value.windows(4).any(|year| year == b"1970"),
                _ => {}
            }
        }
        let place = self.0.iter().position(|cookie| *cookie.name == *name && *cookie.path == *path);
        let cookie = || Cookie { name: name.into(), value: value.into(), path: path.into() };
        match place {
            Some(place) if is_removed => _ = self.0.remove(place),
            Some(place) => self.0[place] = cookie(),
            None if is_removed || self.0.len() == MAX_COOKIES => {}
            None => self.0.push(cookie()),
        }
    }

    /// Writes the cookies for a path as a header has them.
    pub(crate) fn write(&self, path: &[u8], out: &mut Vec<u8>) {
        out.clear();
        for cookie in self.0.iter().filter(|cookie| is_below(&cookie.path, path)) {
            if !out.is_empty() {
                out.extend_from_slice(b"; ");
            }
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
    }
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    Some((text[..equals].trim_ascii(), text[equals + 1..].trim_ascii()))
}

/// True if the host is the domain, or below it.
fn has_host(domain: &[u8], host: &str) -> bool {
    let domain = domain.strip_prefix(b".").unwrap_or(domain);
    let host = host.as_bytes();
    let Some(start) = host.len().checked_sub(domain.len()) else { return false };
    host[start..].eq_ignore_ascii_case(domain) && (start == 0 || host[start - 1] == b'.')
}

/// True if a request with this path and query gets the cookies of `folder` (RFC 6265, section 5.1.4).
fn is_below(folder: &[u8], path: &[u8]) -> bool {
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    path.starts_with(folder)
        && (folder.ends_with(b"/") || matches!(path.get(folder.len()), None | Some(b'/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(jar: &CookieJar, path: &str) -> String {
        let mut out = Vec::new();
        jar.write(path.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_are_kept_replaced_and_removed() {
        let mut jar = CookieJar::default();
        let mut set = |text: &str| {
            let fields: [KeptField; 1] = [(b"set-cookie".as_slice().into(), text.as_bytes().into())];
            jar.receive(&fields, "shop.example");
            sent(&jar, "/cart?x=/y")
        };
        assert_eq!(set("a=1; Secure; HttpOnly"), "a=1");
        assert_eq!(set(" b = x=y ;path=/"), "a=1; b=x=y");
        assert_eq!(set("a=2"), "a=2; b=x=y");
        for ignored in
            ["", "c", "=d", "c=d; Domain=other.example", "c=d; domain=p.example", "c=d; Path=/carts"]
        {
            assert_eq!(set(ignored), "a=2; b=x=y", "{ignored}");
        }
        assert_eq!(set("c=d; Domain=.example; Path=/cart"), "a=2; b=x=y; c=d");
        assert_eq!(set("a=; Max-Age=0"), "b=x=y; c=d");
        assert_eq!(set("b=; expires=Thu, 01 Jan 1970 00:00:00 GMT"), "c=d");
        assert_eq!(set("e=; Max-Age=60"), "c=d; e=");
        set(&format!("f={}", "x".repeat(MAX_COOKIE_BYTES)));
        (0..2 * MAX_COOKIES).for_each(|number| _ = set(&format!("n{number}=")));
        assert_eq!((jar.0.len(), sent(&jar, "/other").contains("f=")), (MAX_COOKIES, false));
    }

    #[test]
    fn path_of_a_cookie_is_a_folder() {
        for (folder, path, is_sent) in [
            ("/", "/a", true),
            ("/a", "/a", true),
            ("/a", "/a/b?c", true),
            ("/a", "/a?b", true),
            ("/a/", "/a/b", true),
            ("/a/", "/a", false),
            ("/a", "/ab", false),
            ("/a/b", "/a", false),
        ] {
            assert_eq!(is_below(folder.as_bytes(), path.as_bytes()), is_sent, "{folder} {path}");
        }
    }
}
