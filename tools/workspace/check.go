package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	run "muster/tools/git"
)

// gitMajor and gitMinor are the oldest git whose options are used here (init --object-format and --initial-branch, 2020).
const gitMajor, gitMinor = 2, 29

// Check reports why this machine can make no workspaces: git is missing, too old, or does not run.
func Check(ctx context.Context) error {
	said, err := git{}.text(ctx, "version")
	if err != nil {
		return err
	}
	var numbers []string
	if words := strings.Fields(said); len(words) > 2 {
		numbers = strings.Split(words[2], ".")
	}
	if len(numbers) < 2 {
		return fmt.Errorf("git version: cannot read %q", said)
	}
	major, err1 := strconv.Atoi(numbers[0])
	minor, err2 := strconv.Atoi(numbers[1])
	if err1 != nil || err2 != nil {
		return fmt.Errorf("git version: cannot read %q", said)
	}
	if major < gitMajor || major == gitMajor && minor < gitMinor {
		return fmt.Errorf("git %d.%d is too old for workspaces: install %d.%d or newer", major, minor, gitMajor, gitMinor)
	}
	return nil
}

// HostFault reports whether err, of making or reading a workspace, is the fault of this machine rather than of the files: another machine may
// have a git, room on its disk, or the rights that are missing here.
func HostFault(err error) bool {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrPermission) {
		return true
	}
	for _, no := range hostFaults() {
		if errors.Is(err, no) {
			return true
		}
	}
	var g *run.Error
	return errors.As(err, &g) && slices.ContainsFunc(hostFaults(), func(no syscall.Errno) bool {
		return strings.Contains(strings.ToLower(g.Says), no.Error()) // git's own words, in the C locale
	})
}

func hostFaults() []syscall.Errno {
	return []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO}
}
