package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

// attachEnv makes the test binary a second process: it attaches to the folder named there, says so, and leaves at the end of its input.
const attachEnv = "EMBEDDED_TEST_ATTACH"

func TestMain(m *testing.M) {
	if dir := os.Getenv(attachEnv); dir != "" {
		second(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// second prints "owner" or "attached", then, for each line of input, what the key k holds (or stores the line there).
func second(dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := Attach(ctx, Options{Dir: dir})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(map[bool]string{true: "owner", false: "attached"}[s.Owner()])
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		// A request that was under way when its server died is not answered by the next one.
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		v, err := exchange(one, s, in.Text())
		cancel()
		fmt.Println(v, err)
	}
	if err := s.Close(); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// exchange puts a value that is not "?" under the key k and returns what is there.
func exchange(ctx context.Context, s *Server, v string) (string, error) {
	js, err := jetstream.New(s.Conn())
	if err != nil {
		return "", err
	}
	kv, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "b"})
	if err != nil {
		return "", err
	}
	if v != "?" {
		if _, err := kv.Put(ctx, "k", []byte(v)); err != nil {
			return "", err
		}
	}
	e, err := kv.Get(ctx, "k")
	if err != nil {
		return "", err
	}
	return string(e.Value()), nil
}

// process is a second process on a folder.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

func run(t *testing.T, dir string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), lines: make(chan string, 64)}
	p.cmd.Env = append(os.Environ(), attachEnv+"="+dir, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer close(p.lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() { p.cmd.Process.Kill(); <-drained; p.cmd.Wait() })
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	select {
	case l := <-p.lines:
		return l
	case <-time.After(20 * time.Second):
		t.Fatal("the second process says nothing")
		return ""
	}
}

func (p *process) ask(t *testing.T, v string) string {
	t.Helper()
	if _, err := io.WriteString(p.in, v+"\n"); err != nil {
		t.Fatal(err)
	}
	return p.line(t)
}

func attach(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Attach(t.Context(), Options{Dir: dir, Log: func(m string) { t.Log(m) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// log keeps what a server says.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, s)
}

func (l *log) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.lines {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func attachLogged(t *testing.T, dir string) (*Server, *log) {
	t.Helper()
	l := &log{}
	s, err := Attach(t.Context(), Options{Dir: dir, Log: l.add})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s, l
}

// until polls cond; a wait for another process has no event to wait for.
func until(t *testing.T, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	tick, end := time.NewTicker(10*time.Millisecond), time.After(limit)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func value(t *testing.T, s *Server, v string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := exchange(ctx, s, v)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTwoInOneProcessShareAServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder with spaces", "ü")
	a := attach(t, dir)
	b := attach(t, dir)
	if !a.Owner() || b.Owner() {
		t.Fatalf("owners: a %v, b %v; want the first only", a.Owner(), b.Owner())
	}
	value(t, a, "from a")
	if got := value(t, b, "?"); got != "from a" {
		t.Errorf("b reads %q", got)
	}
	if a.URL() != b.URL() {
		t.Errorf("addresses differ: %s, %s", a.URL(), b.URL())
	}
}

func TestKilledOwnerIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	p := run(t, dir)
	if got := p.line(t); got != "owner" {
		t.Fatalf("the first process says %q", got)
	}
	if got := p.ask(t, "kept"); got != "kept <nil>" {
		t.Fatalf("the owner stores: %s", got)
	}
	s := attach(t, dir)
	if s.Owner() {
		t.Fatal("two owners")
	}
	before := s.URL()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, time.Minute, "take over and reconnect", func() bool { return s.Owner() && s.Conn().IsConnected() })
	if got := value(t, s, "?"); got != "kept" {
		t.Errorf("the new owner reads %q", got)
	}
	if s.URL() != before {
		t.Errorf("address changed from %s to %s", before, s.URL())
	}
	third := run(t, dir)
	if got := third.line(t); got != "attached" {
		t.Fatalf("a third process says %q", got)
	}
	if got := third.ask(t, "?"); got != "kept <nil>" {
		t.Errorf("a third process reads %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, time.Minute, "serve the third process when the second owner left", func() bool { return third.ask(t, "again") == "again <nil>" })
}

func TestPortTakenMeanwhile(t *testing.T) {
	dir := t.TempDir()
	a, b := attach(t, dir), attach(t, dir)
	value(t, a, "v")
	u, err := url.Parse(a.URL())
	if err != nil {
		t.Fatal(err)
	}
	// The port is taken between the end of the old server and the start of the new one: the lock is what orders them.
	a.stop()
	<-a.done
	a.mu.Lock()
	a.ns.stop()
	l, err := net.Listen("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a.lock.release()
	a.ns, a.lock = nil, nil
	a.mu.Unlock()
	until(t, time.Minute, "take over on another port", func() bool { return b.Owner() && b.Conn().IsConnected() })
	if b.URL() == "nats://"+u.Host {
		t.Errorf("the address is still %s", b.URL())
	}
	if got := value(t, b, "?"); got != "v" {
		t.Errorf("read %q", got)
	}
	until(t, time.Minute, "the old owner's connection follows", a.Conn().IsConnected)
}

func TestStrangersGetNothing(t *testing.T) {
	s := attach(t, t.TempDir())
	if nc, err := nats.Connect(s.URL()); err == nil {
		nc.Close()
		t.Error("an anonymous client was let in")
	} else if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("anonymous: %v", err)
	}
	if nc, err := nats.Connect(strings.Replace(s.URL(), "://", "://u:p@", 1)); err == nil {
		nc.Close()
		t.Error("a client with a made-up password was let in")
	}
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Post(strings.Replace(s.URL(), "nats://", "http://", 1), "text/plain", strings.NewReader("PUB muster.x 2\r\nhi\r\n"))
	if err == nil {
		r.Body.Close()
		t.Errorf("an HTTP request was answered: %s", r.Status)
	}
	until(t, time.Minute, "be alone on the server", func() bool { return s.ns.NumClients() == 1 })
	if s.ns.MonitorAddr() != nil {
		t.Error("a monitoring port is open")
	}
}

func TestFilesAreOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := attach(t, dir)
	for name, want := range map[string]os.FileMode{"": 0o700, lockFile: 0o600, keyFile: 0o600, infoFile: 0o600} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != want {
			t.Errorf("%q has mode %o, want %o", name, st.Mode().Perm(), want)
		}
	}
	var in info
	b, err := os.ReadFile(filepath.Join(dir, infoFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &in); err != nil {
		t.Fatal(err)
	}
	if in.PID != os.Getpid() || in.URL != s.URL() || time.Since(in.Start) > time.Minute {
		t.Errorf("server.json: %s", b)
	}
}

func TestUnusableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file, filepath.Join(file, "below"), "/proc/no/such"} {
		s, err := Attach(t.Context(), Options{Dir: dir})
		if err == nil {
			s.Close()
			t.Errorf("%q: no error", dir)
		} else if !strings.Contains(err.Error(), dir) {
			t.Errorf("%q is not named: %v", dir, err)
		}
	}
}

func TestSilentHolderIsNamed(t *testing.T) {
	dir := t.TempDir()
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	l, err := tryLock(dir)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	defer l.release()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Attach(ctx, Options{Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), fmt.Sprintf("process %d holds it", os.Getpid())) {
		t.Errorf("error: %v", err)
	}
}

func TestStaleAddressOfADeadServer(t *testing.T) {
	dir := t.TempDir()
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	// Another program got the port, and another process the number, of the dead server.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := writeInfo(dir, info{URL: "nats://" + l.Addr().String(), PID: os.Getppid()}); err != nil {
		t.Fatal(err)
	}
	s := attach(t, dir)
	if !s.Owner() || s.URL() == "nats://"+l.Addr().String() {
		t.Errorf("owner %v on %s", s.Owner(), s.URL())
	}
}

func TestStartsAndStopsAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 6 {
				s, err := Attach(t.Context(), Options{Dir: dir})
				if err != nil {
					t.Errorf("%d: %v", w, err)
					return
				}
				if i%2 == 0 {
					until(t, time.Minute, "be connected", s.Conn().IsConnected)
				}
				if err := s.Close(); err != nil {
					t.Errorf("%d: close: %v", w, err)
				}
				if err := s.Close(); err != nil {
					t.Errorf("%d: second close: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	l, err := tryLock(dir)
	if err != nil || l == nil {
		t.Fatalf("the folder is still held: %v", err)
	}
	l.release()
}

func TestManyProcessesOneOwner(t *testing.T) {
	dir := t.TempDir()
	var ps []*process
	for range 3 {
		ps = append(ps, run(t, dir))
	}
	owners := 0
	for _, p := range ps {
		switch got := p.line(t); got {
		case "owner":
			owners++
		case "attached":
		default:
			t.Errorf("a process says %q", got)
		}
	}
	if owners != 1 {
		t.Errorf("%d owners", owners)
	}
}
