package egress

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster/board/policy"
)

// target is where somebody wants to go, after the checks of its text. Its host has one form: lower case, no trailing dot, an
// address as netip writes it, without brackets.
type target struct {
	host string
	port uint16
}

func (t target) portText() string { return strconv.Itoa(int(t.port)) }

func (t target) String() string { return net.JoinHostPort(t.host, t.portText()) }

// CheckURL checks the text of a URL for whoever is about to fetch it, or to follow a redirect to it: http or https, no userinfo, a
// host that can be public, an allowed port. It resolves nothing. The URL it returns has its host in one form: lower case, no
// trailing dot, no port where it is the scheme's. The error wraps ErrRefused where the URL is understood and not allowed.
func (d *Dialer) CheckURL(raw string) (*url.URL, error) {
	u, t, err := d.checkURL(raw)
	if err != nil {
		return nil, err
	}
	u.Host = t.authority(u.Scheme)
	return u, nil
}

// authority is the target as it stands in a URL of the scheme, and in a Host header.
func (t target) authority(scheme string) string {
	switch {
	case t.port != schemePorts[scheme]:
		return t.String()
	case strings.Contains(t.host, ":"):
		return "[" + t.host + "]"
	}
	return t.host
}

var schemePorts = map[string]uint16{"http": 80, "https": 443}

func (d *Dialer) checkURL(raw string) (*url.URL, target, error) {
	if i := strings.IndexFunc(raw, unwelcome); i >= 0 {
		r, _ := utf8.DecodeRuneInString(raw[i:])
		return nil, target{}, malformed("character %+q in the URL", r)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, target{}, malformed("not a URL: %s", strconv.QuoteToASCII(short(raw)))
	}
	port, known := schemePorts[u.Scheme]
	switch {
	case u.Scheme == "":
		return nil, target{}, malformed("a URL must begin with http:// or https://")
	case !known:
		return nil, target{}, refuse("scheme %s is not allowed, only http and https", strconv.QuoteToASCII(short(u.Scheme)))
	case u.Host == "":
		return nil, target{}, malformed("no host in the URL")
	case u.User != nil:
		return nil, target{}, refuse("a user name or password in a URL is not allowed")
	}
	t := target{port: port}
	if text := u.Port(); text != "" {
		if t.port, err = parsePort(text); err != nil {
			return nil, target{}, err
		}
	}
	err = d.checkTarget(&t, u.Hostname(), strings.HasPrefix(u.Host, "["))
	return u, t, err
}

// unwelcome are the characters that parsers of URLs disagree about.
func unwelcome(r rune) bool {
	return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' || r == utf8.RuneError
}

// checkAddress checks the text of a host with its port. With an error, the target is set as far as it is understood.
func (d *Dialer) checkAddress(address string) (target, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return target{}, malformed("%s is not a host and a port", strconv.QuoteToASCII(short(address)))
	}
	var t target
	if t.port, err = parsePort(text); err != nil {
		return target{}, err
	}
	err = d.checkTarget(&t, host, strings.HasPrefix(address, "["))
	return t, err
}

// checkTarget puts the one form of host into t, whose port is set, and checks both.
func (d *Dialer) checkTarget(t *target, host string, brackets bool) error {
	form, err := formOf(host, brackets)
	switch {
	case err != nil:
		return err
	case d.names(target{form, t.port}):
		t.host = form
		return nil
	}
	if err := d.checkPublic(form, host); err != nil {
		if d.knows(form) {
			return refuse("host %s is allowed in the configuration, and its port %d is not: name the host with that port", strconv.QuoteToASCII(short(host)), t.port)
		}
		return err
	}
	t.host = form
	return d.checkPort(t.port)
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, malformed("%s is not a port", strconv.QuoteToASCII(short(text)))
	}
	return uint16(n), nil
}

// formOf returns the one form of a host that is written in a plain way, wherever it may be.
func formOf(host string, brackets bool) (string, error) {
	show := strconv.QuoteToASCII(short(host))
	if strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) { // before letters are lowered: some become ASCII
		return "", misspelt("host %s is not ASCII; an international name is written in its xn-- form", show)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(name)
	switch isAddr := err == nil; {
	case brackets != (isAddr && addr.Is6()):
		return "", malformed("%s: brackets are for IPv6 addresses, and those need them", show)
	case isAddr && addr.Zone() != "":
		return "", refuse("%s has a zone: an address of the local network", show)
	case isAddr:
		return addr.String(), nil
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if strings.ContainsFunc(label, func(r rune) bool { return !isNameRune(r) }) || label == "" || len(label) > 63 || len(name) > 253 ||
			label[0] == '-' || label[len(label)-1] == '-' {
			return "", misspelt("host %s is not a domain name", show)
		}
	}
	if isNumber(labels[len(labels)-1]) {
		return "", refuse("host %s is a number in an odd form; an address is written as four decimal numbers", show)
	}
	return name, nil
}

// checkPublic checks that a host, in its one form and as it was given, can be public.
func (d *Dialer) checkPublic(name, given string) error {
	if addr, err := netip.ParseAddr(name); err == nil {
		return d.checkAddr(addr)
	}
	show := strconv.QuoteToASCII(short(given))
	if policy.Private(name) { // the check of the address is what holds; this one is earlier
		return refuse("host %s is a name of this machine or its network", show)
	}
	return nil
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// isNumber tells whether resolvers and browsers take a name that ends in label for an IPv4 address.
func isNumber(label string) bool {
	if digits, hex := strings.CutPrefix(label, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// short bounds what a refusal repeats.
func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}
