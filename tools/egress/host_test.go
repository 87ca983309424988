package egress

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/tools/egress/egresstest"
)

// hosts parses entries of a configuration.
func hosts(t *testing.T, entries ...string) []Host {
	t.Helper()
	var all []Host
	for _, e := range entries {
		h, err := ParseHost(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// A named host is reached as it is named, and nothing beside it is.
func TestNamedHosts(t *testing.T) {
	t.Parallel()
	d := Dialer{Hosts: hosts(t, "localhost:8888", "Wiki.corp.INTERNAL.", "127.0.0.1:8080", "[fd00::1]", "searxng:8080")}
	for target, allowed := range map[string]bool{
		"localhost:8888": true, "LOCALHOST.:8888": true, "wiki.corp.internal:443": true, "wiki.corp.internal:80": true, "127.0.0.1:8080": true, "[fd00::1]:443": true, "searxng:8080": true,
		"localhost:80": false, "localhost:8080": false, "x.localhost:8888": false, "wiki.corp.internal:8080": false, "x.wiki.corp.internal:443": false, "corp.internal:443": false,
		"127.0.0.1:80": false, "127.0.0.2:8080": false, "127.1:8080": false, "2130706433:8080": false, "[::ffff:127.0.0.1]:8080": false, "[::1]:8080": false, "[fd00::2]:443": false, "searxng:80": false,
		"user@localhost:8888": false,
	} {
		if u, err := d.CheckURL("http://" + target + "/"); errors.Is(err, ErrRefused) == allowed {
			t.Errorf("%s: %v, %v; want allowed: %v", target, u, err, allowed)
		}
	}
	for _, bad := range []string{"", ":80", "a b", "127.1", "0x7f.1", "http://wiki/", "wiki/x", "wiki:99999", "wiki:x", "fd00::1", "[fe80::1%eth0]", "münchen", "*", "*.corp.internal", "user@wiki"} {
		if h, err := ParseHost(bad); err == nil {
			t.Errorf("%q: %v", bad, h)
		}
	}
}

// The address of a named host is not looked at; that of a public name still is, and so is where a redirect leads.
func TestNamedHostIsReached(t *testing.T) {
	t.Parallel()
	inner := listen(t, "127.0.0.2:0")
	server := httptest.NewServer(http.RedirectHandler(fmt.Sprintf("http://%s/", inner.Addr()), http.StatusFound))
	defer server.Close()
	port := portOf(server.Listener)
	ns := egresstest.NewNameserver(t, map[string][][]string{"wiki.corp.internal": {{"127.0.0.1"}}, "site.example.com": {{"127.0.0.1"}}})
	d := Dialer{Hosts: hosts(t, fmt.Sprintf("wiki.corp.internal:%d", port)), Ports: []uint16{80, port, portOf(inner)}, Resolver: ns.Resolver}
	transport := &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://wiki.corp.internal:%d/", port), nil))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("the named host answers %s", resp.Status)
	}
	resp, err = (&http.Client{Transport: transport}).Get(fmt.Sprintf("http://wiki.corp.internal:%d/", port))
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, ErrRefused) {
		t.Errorf("a redirect to another address of this machine: %v", err)
	}
	if conn, err := d.DialContext(t.Context(), "tcp", fmt.Sprintf("site.example.com:%d", port)); !errors.Is(err, ErrRefused) {
		t.Errorf("a public name at the same address: %v, %v", conn, err)
	}
	egresstest.Untouched(t, inner)
}

// What is refused says what to do about it: a host that is none can be written right, one whose port is not allowed can be named with it.
func TestRefusalsTellTheWayOut(t *testing.T) {
	own, err := ParseHost("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	d := Dialer{Hosts: []Host{own}}
	if _, err := d.CheckURL("http://127.0.0.1:9800/"); !errors.Is(err, ErrRefused) || errors.Is(err, ErrMisspelt) || !strings.Contains(err.Error(), "its port 9800 is not: name the host with that port") {
		t.Errorf("another port of a host that is named: %v", err)
	}
	for text, typo := range map[string]bool{"http://a..b/": true, "http://b\u00fccher.example/": true, "http://10.0.0.1/": false, "http://localhost/": false} {
		if _, err := d.CheckURL(text); !errors.Is(err, ErrRefused) || errors.Is(err, ErrMisspelt) != typo {
			t.Errorf("%s: %v", text, err)
		}
	}
}
