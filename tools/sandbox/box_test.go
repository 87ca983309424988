//go:build linux

package sandbox

import (
	"io"
	"net"
	"os/exec"
	"slices"
	"testing"
)

// A server on the other side of the proxy that never ends must not hold the end of a box, and with it the proof of a kill.
func TestCloseDoesNotWaitForTheProxy(t *testing.T) {
	if rs, _ := offered(); !slices.Contains(rs, full) {
		t.Skip("no network of its own here")
	}
	heard, release := make(chan string, 1), make(chan struct{})
	served := make(chan struct{})
	b, err := Open(Policy{Network: "proxy", Writable: []string{t.TempDir()}, Proxy: func(c net.Conn) {
		defer close(served)
		defer c.Close()
		said := make([]byte, 6)
		_, _ = io.ReadFull(c, said)
		heard <- string(said)
		<-release
	}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; cat <&3")
	cmd.Dir, cmd.Env = "/", []string{pathEnv}
	p, err := b.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "hello\n" {
		t.Errorf("the proxy heard %q", got)
	}
	if _, survivors := b.Close(); survivors != 0 {
		t.Errorf("%d survive", survivors)
	}
	if e, err := p.Wait(); err != nil || !e.Killed {
		t.Errorf("got %+v, %v", e, err)
	}
	select {
	case <-served:
		t.Error("the proxy had ended before the box was closed")
	default:
	}
	close(release)
	<-served
}
