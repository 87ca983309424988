package embedded

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// folder makes one with a mode, whatever the umask.
func folder(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mode(t *testing.T, dir string) os.FileMode {
	t.Helper()
	st, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode().Perm()
}

func TestForeignFolderIsRefusedUntouched(t *testing.T) {
	for _, m := range []os.FileMode{0o755, 0o700} {
		dir := folder(t, m)
		if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Attach(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
			t.Errorf("error %v, want one that names what is there", err)
		}
		if got := mode(t, dir); got != m {
			t.Errorf("mode %o became %o", m, got)
		}
	}
}

func TestFolderOthersCanWriteToIsRefused(t *testing.T) {
	for _, m := range []os.FileMode{0o777, 0o702, 0o770 | os.ModeSticky} {
		dir := folder(t, m)
		if m&0o002 == 0 {
			if err := os.Chown(dir, -1, os.Getuid()+1); err != nil {
				t.Logf("giving a folder to another group: %v", err)
				continue
			}
		}
		s, err := Attach(t.Context(), Options{Dir: dir})
		if err == nil {
			s.Close()
			t.Errorf("%o was taken", m)
			continue
		}
		if !strings.Contains(err.Error(), "chmod 700 "+dir) {
			t.Errorf("%o: no way out in: %v", m, err)
		}
		if got := mode(t, dir); got != m.Perm() {
			t.Errorf("mode %o became %o", m, got)
		}
	}
}

func TestFolderThatIsThereKeepsItsMode(t *testing.T) {
	dir := folder(t, 0o755)
	s := attach(t, dir)
	value(t, s, "v")
	if got := mode(t, dir); got != 0o755 {
		t.Errorf("mode became %o", got)
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		st, err := d.Info()
		if err == nil && filepath.Dir(name) == dir && st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", name, st.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnfindableServerIsFoundAgain(t *testing.T) {
	spoil := map[string]func(string) error{
		"removed": os.Remove,
		"damaged": func(name string) error { return os.WriteFile(name, []byte("{"), 0o600) },
		"emptied": func(name string) error { return os.Truncate(name, 0) },
		"foreign": func(name string) error {
			return os.WriteFile(name, []byte(`{"url":"nats://127.0.0.1:1","pid":1}`), 0o600)
		},
	}
	dir := filepath.Join(t.TempDir(), "data")
	s, l := attachLogged(t, dir)
	value(t, s, "v")
	for how, do := range spoil {
		for _, file := range []string{infoFile, keyFile} {
			if err := do(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			start, said := time.Now(), l.count(file+" was gone or damaged")
			p := run(t, dir)
			if got := p.line(t); got != "attached" {
				t.Errorf("%s %s: another process says %q", file, how, got)
			}
			if got := p.ask(t, "?"); got != "v <nil>" {
				t.Errorf("%s %s: another process reads %s", file, how, got)
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%s %s: found after %s", file, how, d)
			}
			until(t, time.Minute, "say so", func() bool { return l.count(file+" was gone or damaged") == said+1 })
		}
	}
	if got := s.URL(); got != s.at.URL {
		t.Errorf("address %s, want %s", got, s.at.URL)
	}
}

func TestReplacedFolderIsLeftToItsNewOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	_, l := attachLogged(t, dir)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	heir, _ := attachLogged(t, dir)
	if !heir.Owner() {
		t.Fatal("the new folder has no owner")
	}
	until(t, time.Minute, "say that it was replaced", func() bool { return l.count("removed or replaced") == 1 })
	in, err := readInfo(dir)
	if err != nil || in.URL != heir.at.URL {
		t.Errorf("server.json says %q (%v), want %q", in.URL, err, heir.at.URL)
	}
}

// A stopped process keeps the lock and its port open, and answers nothing.
func TestStoppedHolderIsNamedInTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := run(t, dir)
	if got := p.line(t); got != "owner" {
		t.Fatalf("the first process says %q", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []time.Duration{300 * time.Millisecond, 3 * time.Second} {
		l := &log{}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		start := time.Now()
		_, err := Attach(ctx, Options{Dir: dir, Log: l.add})
		cancel()
		if d := time.Since(start); d > limit+500*time.Millisecond {
			t.Errorf("gave up after %s of %s", d, limit)
		}
		who := holder(dir)
		if err == nil || !strings.Contains(err.Error(), who+" holds it") || who == "another process" {
			t.Errorf("error: %v", err)
		}
		if n := l.count("waiting for the server"); limit > tellAfter && n != 1 {
			t.Errorf("said %d times whom it waits for:\n%s", n, l)
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if s := attach(t, dir); s.Owner() {
		t.Error("two owners")
	}
}

func TestOwnerKilledWhileOthersAttach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for round := range 3 {
		p := run(t, dir)
		p.line(t)
		if got := p.ask(t, "v"); got != "v <nil>" {
			t.Fatalf("round %d: the owner stores: %s", round, got)
		}
		var ps []*process
		for range 4 {
			ps = append(ps, run(t, dir))
		}
		if round > 0 { // in the first, before any of them is there
			ps[round-1].line(t)
		}
		start := time.Now()
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for i, o := range ps {
			if i != round-1 {
				if got := o.line(t); got != "owner" && got != "attached" {
					t.Errorf("round %d, process %d says %q", round, i, got)
				}
			}
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("round %d: attached after %s", round, d)
		}
		for i, o := range ps {
			until(t, time.Minute, "read", func() bool { return o.ask(t, "?") == "v <nil>" })
			o.in.Close()
			for range o.lines {
				t.Errorf("round %d, process %d says more than it was asked", round, i)
			}
		}
	}
}
