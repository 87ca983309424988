package egress

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// The URLs of the design, and some beside them. Those that are not refused are judged here and connected to nowhere.
func TestURLs(t *testing.T) {
	t.Parallel()
	var d Dialer
	for raw, want := range map[string]string{
		"http://example.com/":                                      "http://example.com/",
		"https://example.com:443/a?b#c":                            "https://example.com/a?b#c",
		"HTTPS://EXAMPLE.com.:443/":                                "https://example.com/",
		"http://example.com:443/":                                  "http://example.com:443/",
		"https://93.184.215.14/":                                   "https://93.184.215.14/",
		"https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/":        "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
		"https://[2606:2800:21F:CB07:6820:80DA:AF6B:8B2C]:80/":     "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:80/",
		"http://172.32.0.1/":                                       "http://172.32.0.1/",
		"http://127.0.0.1.nip.io/":                                 "http://127.0.0.1.nip.io/", // the address is refused later
		"https://xn--mnchen-3ya.de/":                               "https://xn--mnchen-3ya.de/",
		"https://de.wikipedia.org/wiki/Zürich":                     "https://de.wikipedia.org/wiki/Z%C3%BCrich",
		"http://a_b.example.com":                                   "http://a_b.example.com",
		"http://0xdeadbeefcafe.example.com":                        "http://0xdeadbeefcafe.example.com",
		"http://" + strings.Repeat("a.", 120) + "example.com/deep": "http://" + strings.Repeat("a.", 120) + "example.com/deep",
	} {
		u, err := d.CheckURL(raw)
		if err != nil || u.String() != want {
			t.Errorf("%s: %v, %v; want %s", raw, u, err, want)
		}
	}

	refused := []string{
		// of this machine
		"127.0.0.1", "127.127.127.127", "localhost", "LOCALHOST.", "foo.localhost", "0.0.0.0", "localhost.localdomain",
		// numbers in other forms
		"0", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "0X7F.1", "127.0.0.1.", "127.0.0.01", "1.2.3.4.5", "256.256.256.256", "0x", "example.0x7f",
		// IPv6
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::169.254.169.254]", "[64:ff9b:1::a00:1]",
		"[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[fe80::1%25eth0]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[::ffff:0:127.0.0.1]",
		"[::ffff:93.184.215.14]", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c%25eth0]",
		// of networks and clouds
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "metadata.google.internal",
		"Metadata.Google.Internal.", "metadata", "metadata.goog", "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1", "printer", "nas.local", "db.corp.internal", "router.lan", "x.home.arpa",
		// not what it seems
		"user:pw@example.com", "user@example.com", "example.com@127.0.0.1", "127.0.0.1#@example.com", "127.0.0.1?@example.com",
		"１２７.0.0.1", "127。0。0。1", "example．com", "ⓛocalhost.com", "①②⑦.0.0.1", "münchen.de", "\u212aelvin.example.com", "exa\u00admple.com",
		// not a name
		".", "..", "example..com", "example.com..", ".example.com", "-a.example.com", "a-.example.com", "exa!mple.com", "exa$mple.com", "*.example.com",
		strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 128) + "com",
		// ports
		"example.com:22", "example.com:4222", "example.com:0", "example.com:8080",
	}
	for _, host := range refused {
		if u, err := d.CheckURL("http://" + host + "/"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, %v; want it refused", host, u, err)
		} else if line := err.Error(); oneLine(line) != line {
			t.Errorf("%s: %q is not a line of ASCII", host, line)
		}
	}
	for _, raw := range []string{"ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "data:text/html,x", "unix:/var/run/docker.sock", "javascript:alert(1)", "ws://example.com/"} {
		if u, err := d.CheckURL(raw); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, %v; want it refused", raw, u, err)
		}
	}
	for _, raw := range []string{
		"", "/", "//example.com/", "example.com", "http:example.com", "http:///x", "http://", "http://example.com:99999/", "http://example.com:-1/", "http://example.com:+80/", "http://example.com:80:80/",
		"http://exa mple.com/", " http://example.com/", "http://example.com/\r\nHost: x", "http://example.com/\x00", "http://example.com/\u0085", "http://exam\tple.com/", "http://example.com/\xff",
		"http://example.com\\@127.0.0.1/", "http://127.0.0.1\\@example.com/", "http://[::1/", "http://[127.0.0.1]/", "http://[example.com]/", "http://%31%32%37.0.0.1/", "http://::1/", "*",
	} {
		if u, err := d.CheckURL(raw); err == nil {
			t.Errorf("%q: %v; want an error", raw, u)
		} else if line := err.Error(); oneLine(line) != line {
			t.Errorf("%q: %q is not a line of ASCII", raw, line)
		}
	}
}

// What the host's configuration allows is allowed as text too, in its plain form only.
func TestAllowedPrefix(t *testing.T) {
	t.Parallel()
	d := Dialer{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, Ports: []uint16{4222}}
	for host, allowed := range map[string]bool{
		"127.0.0.1:4222": true, "127.9.9.9:4222": true, "[fd00::1]:4222": true,
		"127.0.0.1:80": false, "10.0.0.1:4222": false, "[::1]:4222": false, "[::ffff:127.0.0.1]:4222": false, "localhost:4222": false, "127.1:4222": false, "[fe80::1]:4222": false,
	} {
		if u, err := d.CheckURL("http://" + host + "/"); errors.Is(err, ErrRefused) == allowed {
			t.Errorf("%s: %v, %v; want allowed: %v", host, u, err, allowed)
		}
	}
}
