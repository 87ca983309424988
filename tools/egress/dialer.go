package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrRefused is wrapped where a target is understood and may not be reached. Nothing was sent to it.
var ErrRefused = errors.New("refused")

// Dialer connects to public addresses only. The zero value works.
type Dialer struct {
	Allow    []netip.Prefix // addresses beside the public ones
	Hosts    []Host         // reached wherever they are, a matter of the host's configuration alone
	Ports    []uint16       // empty: 80 and 443
	Resolver *net.Resolver  // nil: the system's
	Timeout  time.Duration  // of finding the address and connecting, together; 0: 30 s
}

// azure is the address of Azure's platform services in every virtual network; it lies in a public range.
var azure = netip.MustParsePrefix("168.63.129.16/32")

// DialContext connects to address, a host and a port, over TCP. The error wraps ErrRefused where it must not be.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, fmt.Errorf("dial %s: %w", network, refuse("only tcp is allowed"))
	}
	t, err := d.checkAddress(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", strconv.QuoteToASCII(address), err)
	}
	return d.dial(ctx, network, t)
}

func (d *Dialer) dial(ctx context.Context, network string, t target) (net.Conn, error) {
	timeout := d.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	dialer := net.Dialer{Timeout: timeout, Resolver: d.Resolver, ControlContext: d.control}
	host := t.host
	if d.names(t) {
		dialer.ControlContext = nil
	} else if _, err := netip.ParseAddr(host); err != nil {
		host += "." // absolute
	}
	dialer.SetMultipathTCP(false)
	return dialer.DialContext(ctx, network, net.JoinHostPort(host, t.portText()))
}

// control sees every address on its way from the resolver to connect.
func (d *Dialer) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return refuse("%s is not allowed, only tcp", network)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse("%s is not an address", strconv.QuoteToASCII(address))
	}
	if err := d.checkPort(at.Port()); err != nil {
		return err
	}
	return d.checkAddr(at.Addr())
}

func (d *Dialer) checkAddr(addr netip.Addr) error {
	v4 := slices.DeleteFunc(slices.Clone(d.Allow), func(p netip.Prefix) bool { return !p.Addr().Is4() })
	v6 := slices.DeleteFunc(slices.Clone(d.Allow), func(p netip.Prefix) bool { return p.Addr().Is4() })
	guard := ssrf.New(ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...), ssrf.WithDeniedV4Prefixes(azure))
	if !addr.IsValid() || addr.Zone() != "" || guard.SafeAddr(addr) != nil {
		return refuse("%s is not a public address", addr)
	}
	return nil
}

func (d *Dialer) checkPort(port uint16) error {
	ports := d.Ports
	if len(ports) == 0 {
		ports = []uint16{80, 443}
	}
	if slices.Contains(ports, port) {
		return nil
	}
	known := strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]")
	return refuse("port %d is not allowed, only %s", port, known)
}

// fault is why a target is not reached, or a request not served, in one line of ASCII for whoever asked.
type fault struct {
	status int // what the proxy answers
	why    string
}

func (f *fault) Error() string { return f.why }

func (f *fault) Is(err error) bool { return err == ErrRefused && f.status == http.StatusForbidden }

// refuse is for what is understood and not allowed.
func refuse(format string, args ...any) *fault {
	return &fault{http.StatusForbidden, fmt.Sprintf(format, args...)}
}

// ErrMisspelt is wrapped beside ErrRefused where the host is none, and could be written in another way.
var ErrMisspelt = errors.New("no host")

// typo is a fault that is ErrMisspelt too.
type typo struct{ *fault }

func (t typo) Is(err error) bool { return err == ErrMisspelt || t.fault.Is(err) }
func (t typo) Unwrap() error     { return t.fault }

func misspelt(format string, args ...any) error { return typo{refuse(format, args...)} }

// malformed is for what is not understood, or could be in two ways.
func malformed(format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}
