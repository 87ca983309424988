package egresstest

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is far more than anything here takes on a busy machine.
const patience = time.Minute

// Untouched checks that nobody ever connected to l: the first connection in its queue is the one made here.
func Untouched(t *testing.T, l *net.TCPListener) {
	t.Helper()
	own, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if err := l.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if first.RemoteAddr().String() != own.LocalAddr().String() {
		t.Errorf("%s connected to %s", first.RemoteAddr(), l.Addr())
	}
}

// Nameserver is a DNS server on loopback, under the test's control.
type Nameserver struct {
	*net.Resolver
	mu    sync.Mutex
	zone  map[string][][]string // name → its addresses: one list an answer, the last for ever
	asked []string              // each name as often as it was asked for (twice a lookup: both families)
}

// NewNameserver starts one that ends with the test.
func NewNameserver(t testing.TB, zone map[string][][]string) *Nameserver {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ns := &Nameserver{zone: zone}
	ns.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFromUDP(b)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUDP(ns.answer(b[:n]), from)
		}
	}()
	return ns
}

const typeA, typeAAAA = 1, 28

// answer is the reply to a query with one question.
func (ns *Nameserver) answer(query []byte) []byte {
	const header = 12
	end := header
	var labels []string
	for query[end] != 0 {
		labels = append(labels, string(query[end+1:end+1+int(query[end])]))
		end += 1 + int(query[end])
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	question := query[header : end+5]

	ns.mu.Lock()
	defer ns.mu.Unlock()
	name := strings.ToLower(strings.Join(labels, "."))
	ns.asked = append(ns.asked, name)
	answers, known := ns.zone[name]
	var data [][]byte
	if known {
		for _, text := range answers[0] {
			if addr := netip.MustParseAddr(text); addr.Is4() == (kind == typeA) {
				data = append(data, addr.AsSlice())
			}
		}
		// Both families of one lookup get the same list: the second question moves on.
		if len(answers) > 1 && len(slices.DeleteFunc(slices.Clone(ns.asked), func(s string) bool { return s != name }))%2 == 0 {
			ns.zone[name] = answers[1:]
		}
	}
	code := byte(0)
	if !known {
		code = 3
	}
	reply := append([]byte{query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, byte(len(data)), 0, 0, 0, 0}, question...)
	for _, d := range data {
		reply = append(reply, 0xc0, header)
		reply = binary.BigEndian.AppendUint16(reply, kind)
		reply = append(reply, 0, 1, 0, 0, 0, 0, 0, byte(len(d)))
		reply = append(reply, d...)
	}
	return reply
}

// Names lists what was asked for, sorted, each once.
func (ns *Nameserver) Names() []string {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	s := slices.Clone(ns.asked)
	slices.Sort(s)
	return slices.Compact(s)
}
