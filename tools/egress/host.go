package egress

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Host is a server that the host's configuration names, so that it is reached wherever it is: a name or an address, with or without a port.
type Host struct {
	name string // in its one form
	port uint16 // 0: the ports of the Dialer
}

// ParseHost reads a host such as "wiki.corp.internal", "127.0.0.1:8080" or "[fd00::1]".
func ParseHost(text string) (Host, error) {
	if strings.Contains(text, "/") {
		return Host{}, malformed("%s: write the host alone, without scheme and path", strconv.QuoteToASCII(short(text)))
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = text, ""
		if inner, ok := strings.CutPrefix(text, "["); ok {
			host = strings.TrimSuffix(inner, "]")
		}
	}
	var h Host
	if port != "" {
		if h.port, err = parsePort(port); err != nil {
			return Host{}, err
		}
	}
	if h.name, err = formOf(host, strings.HasPrefix(text, "[")); err != nil {
		return Host{}, fmt.Errorf("%w (write a name or an address, with or without a port)", err)
	}
	return h, nil
}

// knows says that the configuration names a host, with whatever port.
func (d *Dialer) knows(name string) bool {
	return slices.ContainsFunc(d.Hosts, func(h Host) bool { return h.name == name })
}

// names says that the configuration names a target. Its address is not looked at then, since it may be any.
func (d *Dialer) names(t target) bool {
	for _, h := range d.Hosts {
		if h.name == t.host && (h.port == t.port || h.port == 0 && d.checkPort(t.port) == nil) {
			return true
		}
	}
	return false
}
