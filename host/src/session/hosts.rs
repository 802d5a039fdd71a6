//! How the crate is told of the servers: so that it finds out when its time is up.
//!
//! The crate's attempts to connect again end when its timer is seen to have gone off, and it looks
//! at the timer only where an attempt has to wait. An address that cannot be reached at all, as
//! where this host has lost its network, fails at once; from then on the crate tries without a
//! pause and without an end, on a thread that does nothing else any more. Names are looked up on
//! another thread, for which every attempt waits. So an address is spelled as the system's resolver
//! reads it and Rust's parser does not.
//!
//! With TLS the spelling is what the server's certificate has to say, and stays. The crate is told of
//! one host more, which has a name and is nowhere: it waits for that one in every round.

use std::net::{IpAddr, SocketAddr};

/// The hosts of a connect string, with every address spelled so that it is looked up.
pub(super) fn looked_up(hosts: &str) -> String {
    hosts.split(',').map(spell).collect::<Vec<_>>().join(",")
}

/// The hosts of a connect string, each as it is. If any is an address, there is one more in front, of a
/// name that no resolver asks anybody for: a label has 63 bytes at most (RFC 1035, section 2.3.4).
pub(super) fn with_a_name(hosts: &str) -> String {
    let is_address = |host: &str| spell(host) != host;
    match hosts.split(',').any(is_address) {
        true => format!("tcp://{}.invalid:1,{hosts}", "nowhere-".repeat(8)),
        false => hosts.to_owned(),
    }
}

/// What is no address stays as it is.
fn spell(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match (host.parse::<SocketAddr>(), bare.parse::<IpAddr>()) {
        (Ok(address), _) => format!("{}:{}", spell_address(address.ip()), address.port()),
        (_, Ok(address)) => spell_address(address),
        _ => host.to_owned(),
    }
}

fn spell_address(address: IpAddr) -> String {
    match address {
        // The last two bytes as one number: inet_aton(3).
        IpAddr::V4(address) => {
            let [first, second, third, fourth] = address.octets();
            format!("{first}.{second}.{}", u16::from_be_bytes([third, fourth]))
        }
        // With the zone that stands for none: RFC 4007, section 11.2.
        IpAddr::V6(address) => format!("[{address}%0]"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs;

    use super::*;

    #[test]
    fn an_address_is_looked_up_and_found_to_be_itself() {
        for (host, spelled) in [
            ("127.0.0.1:2181", "127.0.1:2181"),
            ("10.77.1.2:1", "10.77.258:1"),
            ("255.255.255.255:65535", "255.255.65535:65535"),
            ("[::1]:2181", "[::1%0]:2181"),
            ("[fd00::ff:1]:2181", "[fd00::ff:1%0]:2181"),
        ] {
            assert_eq!(looked_up(host), spelled);
            let (name, port) = spelled.rsplit_once(':').unwrap();
            let name = name.trim_matches(['[', ']']);
            assert!(name.parse::<IpAddr>().is_err(), "{name} would not be looked up");
            let mut found = (name, port.parse().unwrap()).to_socket_addrs().unwrap();
            assert_eq!(found.next(), Some(host.parse().unwrap()), "{spelled}");
        }
    }

    #[test]
    fn where_addresses_stay_as_they_are_there_is_a_name_that_is_nobodys() {
        assert_eq!(with_a_name("zk1.example:2281,zk2"), "zk1.example:2281,zk2");
        for hosts in ["10.0.0.1:2281", "zk1.example:2281,[::1]:2281"] {
            let told = with_a_name(hosts);
            let (name, rest) = told.split_once(',').unwrap();
            assert_eq!(rest, hosts);
            let name = name.strip_prefix("tcp://").unwrap();
            assert!(name.parse::<SocketAddr>().is_err(), "{name} would not be looked up");
            assert!(name.to_socket_addrs().is_err(), "{name} is somebody's");
        }
    }

    #[test]
    fn a_port_is_not_needed_and_a_name_stays_as_it_is() {
        let hosts = "zk1.example:2181,10.0.0.1,zk2,[::1],[fe80::1%eth0]:2181,1.2.3";
        let spelled = "zk1.example:2181,10.0.1,zk2,[::1%0],[fe80::1%eth0]:2181,1.2.3";
        assert_eq!(looked_up(hosts), spelled);
    }
}
