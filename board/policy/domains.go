package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const maxDomains = 500

// Domain is a pattern for hosts: a name, "*." and a name for every name below it (not the name itself), or an address.
type Domain struct {
	name  string
	below bool
	addr  netip.Addr
}

// ParseDomain reads a pattern such as "go.dev", "*.go.dev" or "192.0.2.1". Capitals and a dot at the end make no difference.
func ParseDomain(pattern string) (Domain, error) {
	text, below := strings.CutPrefix(pattern, "*.")
	switch {
	case strings.Contains(text, "*"):
		return Domain{}, fmt.Errorf("domain %q: a * stands only before the first dot, for every name below", clip(pattern))
	case strings.Contains(text, "://"):
		return Domain{}, fmt.Errorf("domain %q can never match: it has a scheme; write the host alone", clip(pattern))
	case strings.ContainsAny(text, "/?#"):
		return Domain{}, fmt.Errorf("domain %q can never match: it has a path; write the host alone", clip(pattern))
	case strings.Contains(text, "@"):
		return Domain{}, fmt.Errorf("domain %q can never match: it has a user; write the host alone", clip(pattern))
	}
	name, addr, err := HostOf(text)
	switch {
	case err == nil && addr.IsValid() && below:
		return Domain{}, fmt.Errorf("domain %q can never match: no host is below an address", clip(pattern))
	case err == nil:
		return Domain{name, below, addr}, nil
	}
	if host, _, found := strings.Cut(text, ":"); found && strings.Count(text, ":") == 1 {
		if _, _, err := HostOf(host); err == nil {
			return Domain{}, fmt.Errorf("domain %q can never match: it has a port; write the host alone", clip(pattern))
		}
	}
	return Domain{}, fmt.Errorf("domain %q can never match: %w", clip(pattern), err)
}

// HostOf brings a host into its one form: a name in small letters without a dot at its end, or an address.
func HostOf(host string) (string, netip.Addr, error) {
	name := strings.ToLower(host)
	if inner, ok := strings.CutPrefix(name, "["); ok {
		name = strings.TrimSuffix(inner, "]")
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Zone() != "" {
			return "", addr, errors.New("an address with a zone is of this machine's links")
		}
		return "", addr.Unmap(), nil
	}
	name = strings.TrimSuffix(name, ".")
	labels := strings.Split(name, ".")
	for _, l := range labels {
		switch {
		case strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return "", netip.Addr{}, errors.New("a host has ASCII letters, digits, hyphens and dots; an international name is written in its xn-- form")
		case l == "" || len(l) > 63 || len(name) > 253 || strings.Trim(l, "-") != l:
			return "", netip.Addr{}, errors.New("it is no name of a host")
		}
	}
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", netip.Addr{}, errors.New("it is a number in an odd form; an address is written as four decimal numbers")
	}
	return name, netip.Addr{}, nil
}

// Matches says whether the pattern is for a host, which is given without a port. A host that is neither a name nor an address matches nothing.
func (d Domain) Matches(host string) bool {
	name, addr, err := HostOf(host)
	switch {
	case err != nil:
		return false
	case d.addr.IsValid() || addr.IsValid():
		return d.addr == addr
	case d.below:
		return strings.HasSuffix(name, "."+d.name)
	}
	return name == d.name
}

// Covers says whether every host of o is one of d.
func (d Domain) Covers(o Domain) bool {
	return d == o || d.below && !o.addr.IsValid() && strings.HasSuffix(o.name, "."+d.name) || d.below && o.below && d.name == o.name
}

// clip is a pattern as it stands in an error: on one line and not long.
func clip(pattern string) string {
	pattern = strings.Join(strings.Fields(pattern), " ")
	return string([]rune(pattern)[:min(len([]rune(pattern)), 80)])
}

// checkDomain takes what a command's network may be opened to: a name or all names below one, in the one form that it has on the board.
func checkDomain(d string) error {
	domain, err := ParseDomain(d)
	switch {
	case err != nil:
		return err
	case domain.addr.IsValid():
		return fmt.Errorf("domain %q: write a name; addresses are never allowed", clip(d))
	case Private(strings.Replace(d, "*", "any", 1)):
		return fmt.Errorf("domain %q can never be reached: it is a name of this machine or its network; --network open gives those", clip(d))
	case strings.TrimPrefix(d, "*.") != domain.name:
		return fmt.Errorf("domain %q: write it in small letters, without a dot at its end: %q", clip(d), domain.name)
	}
	return nil
}

// private are the names that no public server has, alone and as the end of others: of the machine itself, of its network, and of the metadata
// services of clouds.
var private = []string{
	"localhost", "localdomain", "local", "internal", "lan", "home.arpa",
	"metadata.goog", "metadata.tencentyun.com",
}

// Private says whether a name, in its one form, can be none of a public server.
func Private(name string) bool {
	return !strings.Contains(name, ".") || slices.ContainsFunc(private, func(suffix string) bool {
		return name == suffix || strings.HasSuffix(name, "."+suffix)
	})
}

// Within says whether a domain, or a pattern of them, is among those allowed: one of them, or below one that begins with "*.".
func Within(domain string, allowed []string) bool {
	d, err := ParseDomain(domain)
	return err == nil && slices.ContainsFunc(allowed, func(a string) bool {
		pattern, err := ParseDomain(a)
		return err == nil && pattern.Covers(d)
	})
}

// without lists the domains that are not among those allowed.
func without(domains, allowed []string) (more []string) {
	for _, d := range domains {
		if !Within(d, allowed) {
			more = append(more, d)
		}
	}
	return more
}

// common is what is among both.
func common(a, b []string) []string {
	var both []string
	for _, d := range a {
		if Within(d, b) {
			both = append(both, d)
		}
	}
	for _, d := range b {
		if Within(d, a) && !slices.Contains(both, d) {
			both = append(both, d)
		}
	}
	return both
}
