package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"
)

// disk mounts one of 32 MB; only root may.
func disk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=32m,mode=0700"); err != nil {
		t.Skipf("mounting a small disk takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", errors.Join(err, syscall.Unmount(dir, syscall.MNT_DETACH)))
		}
	})
	return dir
}

// fill takes the disk of dir but for rest bytes; what it returns gives them back.
func fill(t *testing.T, dir string, rest int64) (empty func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := int64(free(dir)) - rest; n > 0 {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, n); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

// store puts messages of 256 KB into a stream until one is refused or n are stored.
func store(t *testing.T, s *Server, n int) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	js, err := jetstream.New(s.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "big", Subjects: []string{"big"}}); err != nil {
		return 0, err
	}
	for i := range n {
		one, done := context.WithTimeout(ctx, time.Second)
		_, err := js.Publish(one, "big", make([]byte, 256<<10))
		done()
		if err != nil {
			return i, err
		}
	}
	return n, nil
}

// read reads the key k and writes nothing.
func read(t *testing.T, s *Server) string {
	t.Helper()
	js, err := jetstream.New(s.Conn())
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	e, err := kv.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Value())
}

func TestFullDiskIsNamed(t *testing.T) {
	want := regexp.MustCompile(`^data folder \S+: its disk is full \(no space left on device\): \d+ bytes \(\d\.\d MiB\) free, 4 MiB needed; make room there, or name .* --data$`)
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("used %v", used), func(t *testing.T) {
			root := disk(t)
			dir := filepath.Join(root, "data")
			if used {
				s, _ := attachLogged(t, dir)
				if n, err := store(t, s, 8); err != nil {
					t.Fatalf("message %d: %v", n, err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for _, rest := range []int64{0, 64 << 10, roomNeeded / 2} {
				empty := fill(t, root, rest)
				p := run(t, dir)
				got := strings.TrimPrefix(p.line(t), "error ")
				if !want.MatchString(got) {
					t.Errorf("with %d bytes free: %s", rest, got)
				}
				empty()
			}
			s, _ := attachLogged(t, dir)
			if _, err := store(t, s, 1); err != nil {
				t.Errorf("with room again: %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".room-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestFilledWhileServingGoesOn(t *testing.T) {
	root := disk(t)
	dir := filepath.Join(root, "data")
	s, l := attachLogged(t, dir)
	other := run(t, dir)
	if got := other.line(t); got != "attached" {
		t.Fatalf("the second process says %q", got)
	}
	value(t, s, "before")
	before := s.URL()
	for round := range 2 {
		empty := fill(t, root, 1<<20)
		if n, err := store(t, s, 100); err == nil {
			t.Fatalf("%d messages went onto a full disk", n)
		}
		until(t, time.Minute, "say that the disk is full", func() bool { return l.count("stands still") == round+1 })
		if got := read(t, s); got != "before" {
			t.Errorf("on a full disk k reads %q", got)
		}
		empty()
		until(t, time.Minute, "restart", func() bool { return l.count("was restarted") == round+1 && s.Conn().IsConnected() })
		if n, err := store(t, s, 4); err != nil {
			t.Fatalf("with room again, message %d: %v\n%s", n, err, l)
		}
	}
	if s.URL() != before || !s.Owner() {
		t.Errorf("address %s, was %s; owner %v", s.URL(), before, s.Owner())
	}
	until(t, time.Minute, "serve the other process", func() bool { return other.ask(t, "after") == "after <nil>" })
	if got := value(t, s, "?"); got != "after" {
		t.Errorf("read %q", got)
	}
	if n := len(l.lines); n > 12 {
		t.Errorf("%d lines:\n%s", n, l)
	}
}

func TestTheDiskDecides(t *testing.T) {
	s, _ := attachLogged(t, filepath.Join(disk(t), "data"))
	// Three quarters of 32 MB would end it at 24.
	if n, err := store(t, s, 26<<2); err != nil {
		t.Errorf("after %d messages of 256 KB: %v", n, err)
	}
}

func TestCloseOnAFullDisk(t *testing.T) {
	root := disk(t)
	dir := filepath.Join(root, "data")
	s, l := attachLogged(t, dir)
	value(t, s, "kept")
	empty := fill(t, root, 1<<20)
	if n, err := store(t, s, 100); err == nil {
		t.Fatalf("%d messages went onto a full disk", n)
	}
	until(t, time.Minute, "say that the disk is full", func() bool { return l.count("stands still") == 1 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	empty()
	again, _ := attachLogged(t, dir)
	if got := value(t, again, "?"); got != "kept" {
		t.Errorf("read %q", got)
	}
}
