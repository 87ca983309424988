package board_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"muster/board"
	"muster/board/boardtest"
	"muster/board/embedded"
)

// TestMain is also the worker process of the tests that stop or kill one: the test binary started with workerURL set.
func TestMain(m *testing.M) {
	if url := os.Getenv(workerURL); url != "" {
		if err := workerProcess(url, os.Getenv(workerKey)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

const workerURL, workerKey = "BOARD_TEST_WORKER_URL", "BOARD_TEST_WORKER_KEY"

// workerProcess serves one slot until it is interrupted. Its handler reports that it started, waits until the lease is lost, and then
// behaves badly: it appends to the log and returns a result.
func workerProcess(url, keyFile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	key, err := nats.NkeyOptionFromSeed(keyFile)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), key)
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := board.Connect(ctx, nc, board.Config{AckWait: ackWait, Log: zerolog.New(os.Stdout)})
	if err != nil {
		return err
	}
	return b.Serve(ctx, board.Worker{Name: "process", Slots: 1}, func(ctx context.Context, l *board.Lease) (board.Result, error) {
		if err := l.Append(ctx, "started", os.Getpid()); err != nil {
			return board.Result{}, err
		}
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), board.ErrStopping) {
			return board.Result{}, context.Cause(ctx)
		}
		fmt.Println("cause:", context.Cause(ctx))
		fmt.Println("append:", l.Append(ctx, "late", "from a fenced holder"))
		return board.Result{State: board.Done, Text: "from a fenced holder"}, nil
	})
}

const ackWait = 2 * time.Second

// process is a worker in a process of its own.
type process struct {
	cmd *exec.Cmd
	out *lockedBuffer
}

func startWorker(t *testing.T, s *embedded.Server) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), out: &lockedBuffer{}}
	p.cmd.Env = append(os.Environ(), workerURL+"="+s.URL(), workerKey+"="+s.KeyFile())
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p *process) wait() string {
	_ = p.cmd.Wait() // its exit status is no subject
	return p.out.String()
}

// started waits until the process works on the job.
func started(t *testing.T, b *board.Board, id string) {
	t.Helper()
	boardtest.Until(t, "the worker process has started the job", func() bool {
		for _, k := range kinds(t, b, id) {
			if strings.HasPrefix(k, "started/") {
				return true
			}
		}
		return false
	})
}
