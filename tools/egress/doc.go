// Package egress is the one way out of this machine for whoever is not trusted: commands in a sandbox, which know it as an HTTP
// proxy, and tools that fetch what a model names. It holds a dialer that connects to public addresses only, and the proxy on top of
// it, which adds a list of allowed domains.
//
// # Where a connection may go
//
// Two checks, each enough for what it sees:
//
//	text     Dialer.CheckURL, and the same of host and port before every dial: odd spellings of numbers (127.1, 0x7f000001, 0177.0.0.1),
//	         localhost, names of local networks and of metadata services, userinfo, zones, non-ASCII, ports that are not allowed.
//	         It is early and cheap, and it keeps names that are none from a resolver.
//	address  the resolved one, between socket and connect. This is the protection: what was checked is what is connected to, so that
//	         a name with two answers, or with another one the next time, gains nothing. Only globally routable unicast addresses pass,
//	         and whatever Dialer.Allow adds.
//
// Dialer.Hosts are servers that the configuration of this machine names, such as a wiki of its own network: those alone, on those ports
// alone, are reached wherever they are and whatever they are called. The proxy of commands has none.
//
// Names are resolved as absolute ones: no search list of the host turns them into others. No proxy of the environment is asked.
//
// # The life of a connection
//
//	Serve      the sandbox hands over a connection that a command made to the proxy's address
//	head       read within a time and 64 KiB, parsed strictly: what could be read in two ways is malformed (400)
//	judge      target text, agreement of the Host header, allowed domains (403; nothing is resolved before)
//	dial       through the Dialer (403 for a refused address, 502 for none that answers)
//	tunnel     CONNECT: bytes both ways, each end passed on by itself
//	forward    absolute-form http: sent again without what belongs to the hop; the response streams back
//	end        one request a connection: nothing can be smuggled behind it. Config.Log is told once
//
// A refusal says why, and of a domain which configuration allows it, in the body and in the status line, since many clients show only that.
//
// # Promises
//
//   - Nothing is dialed, and no name is resolved, for a host that Config.Allowed does not know.
//   - No redirect is followed, no protocol switched, no header of a hop passed on; the Host that is sent is the target's.
//   - The number of connections, the head of requests and responses, and the time without progress are bounded.
//   - After Close no connection is open and no goroutine of the proxy runs.
//
// What is inside a tunnel is not looked at: who may reach a domain may reach what its servers serve under other names.
package egress
