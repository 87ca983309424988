package rules

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"muster/board/policy"
)

func parseHostSpec(spec string) (*policy.Domain, error) {
	pattern, ok := strings.CutPrefix(spec, "domain:")
	if !ok {
		return nil, errors.New("write the host behind domain:, such as web_fetch(domain:go.dev)")
	}
	d, err := policy.ParseDomain(pattern)
	if err != nil {
		return nil, err
	}
	return &d, nil
}

// hostOfURL is the host that a call would reach.
func hostOfURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is no URL with a host", short(raw))
	}
	if _, _, err := policy.HostOf(u.Hostname()); err != nil {
		return "", fmt.Errorf("host %q: %w", short(u.Hostname()), err)
	}
	return u.Hostname(), nil
}
