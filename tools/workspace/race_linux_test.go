package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// race runs swap over and over until work has run rounds times.
func race(rounds int, swap func(), work func(i int)) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				swap()
			}
		}
	})
	for i := range rounds {
		work(i)
	}
	close(stop)
	wg.Wait()
}

// swapped reports whether err says that the place never stood still.
func swapped(err error) bool {
	return errors.Is(err, ErrChanged) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}

func TestSwappedFolderLeadsNowhere(t *testing.T) {
	tree, dir, out := openTest(t)
	real, lure := filepath.Join(dir, "d"), filepath.Join(dir, "lure")
	put(t, filepath.Join(real, "secret"), "inside")
	link(t, out, lure)
	read, wrote, refused := 0, 0, 0
	race(10_000, func() {
		unix.Renameat2(unix.AT_FDCWD, real, unix.AT_FDCWD, lure, unix.RENAME_EXCHANGE)
	}, func(i int) {
		if i%4 > 0 {
			got, err := readAll(tree, "d/secret")
			if err == nil && got == "secret" {
				t.Error("read the outside file")
			}
			if err == nil {
				read++
			}
			return
		}
		_, err := write(tree, "d/new", []byte("x"))
		switch {
		case err == nil:
			wrote++
		case errors.Is(err, ErrOutside), swapped(err):
			refused++
		default:
			t.Error(err)
		}
	})
	if left, _ := os.ReadDir(out); len(left) != 1 || get(t, filepath.Join(out, "secret")) != "secret" {
		t.Errorf("outside was touched: %v", left)
	}
	if read == 0 || wrote == 0 || refused == 0 {
		t.Errorf("nothing was raced: %d reads, %d writes, %d refused", read, wrote, refused)
	}
}

func TestSwappedFileLeadsNowhere(t *testing.T) {
	tree, dir, out := openTest(t)
	name, side := filepath.Join(dir, "f"), filepath.Join(dir, "side")
	put(t, name, "inside")
	race(10_000, func() {
		os.Symlink(filepath.Join(out, "secret"), side)
		os.Rename(side, name)
		os.WriteFile(side, []byte("inside"), 0o644)
		os.Rename(side, name)
	}, func(i int) {
		if i%4 > 0 {
			if got, err := readAll(tree, "f"); err == nil && got == "secret" {
				t.Error("read the outside file")
			}
			return
		}
		write(tree, "f", []byte("inside"))
	})
	if got := get(t, filepath.Join(out, "secret")); got != "secret" {
		t.Errorf("outside file is %q", got)
	}
}

func TestSwappedFIFODoesNotHang(t *testing.T) {
	tree, dir, _ := openTest(t)
	name, side := filepath.Join(dir, "d/f"), filepath.Join(dir, "side")
	put(t, name, "inside")
	done := make(chan struct{})
	go func() {
		defer close(done)
		race(5_000, func() {
			syscall.Mkfifo(side, 0o644)
			os.Rename(side, name)
			os.WriteFile(side, []byte("inside"), 0o644)
			os.Rename(side, name)
			os.Rename(filepath.Join(dir, "d"), side)
			syscall.Mkfifo(filepath.Join(dir, "d"), 0o644)
			os.Remove(filepath.Join(dir, "d"))
			os.Rename(side, filepath.Join(dir, "d"))
		}, func(i int) {
			switch i % 4 {
			case 0:
				write(tree, "d/f", []byte("inside"))
			case 1:
				tree.ReadDir("d")
			default:
				readAll(tree, "d/f")
			}
		})
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("an operation hangs on a FIFO")
	}
}
