package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"

	"muster/tools/egress/egresstest"
)

// No packet goes to a refused address, however it is written, and however it is found.
func TestRefusedIsNotTouched(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	listeners := []*net.TCPListener{l}
	if six, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", portOf(l))); err == nil {
		defer six.Close()
		listeners = append(listeners, six.(*net.TCPListener))
	}
	ns := egresstest.NewNameserver(t, map[string][][]string{
		"loop.example.com":   {{"127.0.0.1"}},
		"six.example.com":    {{"::1"}},
		"mapped.example.com": {{"::ffff:127.0.0.1"}},
		"many.example.com":   {{"10.0.0.1", "169.254.169.254", "168.63.129.16", "127.0.0.1", "::1", "fd00:ec2::254"}},
	})
	d := Dialer{Ports: []uint16{portOf(l)}, Resolver: ns.Resolver}
	for _, host := range []string{
		"127.0.0.1", "0.0.0.0", "0", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:0:127.0.0.1]",
		"loop.example.com", "LOOP.example.com.", "six.example.com", "mapped.example.com", "many.example.com",
	} {
		conn, err := d.DialContext(t.Context(), "tcp", fmt.Sprintf("%s:%d", host, portOf(l)))
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v; want it refused", host, err)
		}
	}
	for _, l := range listeners {
		egresstest.Untouched(t, l)
	}
}

// Numbers, and names that are none, never reach a resolver; those that do get no search list of the host.
func TestResolverIsSpared(t *testing.T) {
	t.Parallel()
	ns := egresstest.NewNameserver(t, nil)
	d := Dialer{Resolver: ns.Resolver}
	for _, host := range []string{"0", "127.1", "2130706433", "0x7f000001", "017700000001", "0x7f.0.0.1", "1.2.3.4.5", "localhost", "x.local", "single", "a..b", "１27.0.0.1", "user@example.com", "metadata.google.internal"} {
		if _, err := d.DialContext(t.Context(), "tcp", host+":80"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v; want it refused", host, err)
		}
	}
	var lookup *net.DNSError
	if _, err := d.DialContext(t.Context(), "tcp", "nowhere.example.com:80"); !errors.As(err, &lookup) || !lookup.IsNotFound {
		t.Errorf("an unknown name: %v", err)
	}
	if want := []string{"nowhere.example.com"}; !slices.Equal(ns.Names(), want) {
		t.Errorf("the resolver was asked for %q, want %q", ns.Names(), want)
	}
}

// The second answer of a name is loopback: what is connected to is what was checked. 127.0.0.2 stands for a public address.
func TestRebinding(t *testing.T) {
	t.Parallel()
	inner := listen(t, "127.0.0.1:0")
	outer := listen(t, fmt.Sprintf("127.0.0.2:%d", portOf(inner)))
	ns := egresstest.NewNameserver(t, map[string][][]string{
		"turns.example.com": {{"127.0.0.2"}, {"127.0.0.1"}},
		"both.example.com":  {{"127.0.0.1", "127.0.0.2"}},
	})
	d := Dialer{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Ports: []uint16{portOf(inner)}, Resolver: ns.Resolver}
	dial := func(name string) (string, error) {
		conn, err := d.DialContext(t.Context(), "tcp", fmt.Sprintf("%s:%d", name, portOf(inner)))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return conn.RemoteAddr().String(), nil
	}
	if got, err := dial("turns.example.com"); got != outer.Addr().String() {
		t.Errorf("first: %s, %v", got, err)
	}
	if got, err := dial("turns.example.com"); !errors.Is(err, ErrRefused) {
		t.Errorf("second: %s, %v; want it refused", got, err)
	}
	if got, err := dial("both.example.com"); got != outer.Addr().String() {
		t.Errorf("a name with both: %s, %v", got, err)
	}
	egresstest.Untouched(t, inner)
}

func TestOnlyTCP(t *testing.T) {
	t.Parallel()
	var d Dialer
	for _, network := range []string{"udp", "udp4", "unix", "ip", "ip4:icmp", ""} {
		if _, err := d.DialContext(t.Context(), network, "93.184.215.14:80"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v; want it refused", network, err)
		}
		if err := d.control(t.Context(), network, "93.184.215.14:80", nil); !errors.Is(err, ErrRefused) {
			t.Errorf("control %s: %v; want it refused", network, err)
		}
	}
	for address, allowed := range map[string]bool{"93.184.215.14:443": true, "93.184.215.14:22": false, "168.63.129.16:80": false, "[fe80::1%1]:80": false, "x": false} {
		if err := d.control(t.Context(), "tcp4", address, nil); errors.Is(err, ErrRefused) == allowed {
			t.Errorf("control %s: %v", address, err)
		}
	}
}

// As the dialer of an HTTP client: redirects go through it too.
func TestHTTPClient(t *testing.T) {
	t.Parallel()
	inner := listen(t, "127.0.0.2:0")
	server := httptest.NewServer(http.RedirectHandler("http://hidden.example.com:"+fmt.Sprint(portOf(inner)), http.StatusFound))
	defer server.Close()
	ns := egresstest.NewNameserver(t, map[string][][]string{"site.example.com": {{"127.0.0.1"}}, "hidden.example.com": {{"127.0.0.2"}}})
	port := portOf(server.Listener)
	d := Dialer{Allow: []netip.Prefix{loopback}, Ports: []uint16{port, portOf(inner)}, Resolver: ns.Resolver}
	transport := &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("http://site.example.com:%d/", port))
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, ErrRefused) {
		t.Errorf("a redirect to a refused address: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.DialContext(ctx, "tcp", fmt.Sprintf("site.example.com:%d", port)); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a cancelled dial: %v", err)
	}
	egresstest.Untouched(t, inner)
}
