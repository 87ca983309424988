package tools

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"muster/tools/sandbox"
)

// confined fails for a tool that starts commands or follows them where this machine cannot confine them as it must, and for one of git where there is none.
func (s *Set) confined(t Tool) error {
	ofGit := strings.HasPrefix(t.Name, "git_")
	if s.bare == nil || t.Class != Execute && !ofGit && !strings.HasPrefix(t.Name, "task_") {
		return nil
	}
	if err := s.bare(); err != nil {
		return fail(Permission, "%s is not offered, since commands cannot be confined here: %v; finish without running commands", t.Name, err)
	}
	if ofGit {
		_, err := s.gitProgram()
		return err
	}
	return nil
}

// openBox is the box of the agent's commands, made for the first of them.
func (s *Set) openBox() (*sandbox.Box, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box != nil {
		return s.box, nil
	}
	if err := s.ready(); err != nil {
		return nil, err
	}
	box, err := s.open(s.policy())
	s.box = box
	return box, err
}

// ready makes what every box needs, unless the set has ended. It is called with the lock.
func (s *Set) ready() error {
	if s.ended {
		return errClosed()
	}
	if s.own != "" {
		return nil
	}
	own, err := os.MkdirTemp(filepath.Dir(s.cfg.Tree.Scratch), "views-")
	if err == nil {
		s.own = own
		err = os.Chmod(own, 0o755) // the user of a box is another
	}
	return err
}

// open makes a box, which ends with the set at the latest. It is called with the lock.
func (s *Set) open(p sandbox.Policy) (*sandbox.Box, error) {
	box, err := sandbox.Open(p)
	if err != nil {
		return nil, err
	}
	if s.boxes == nil {
		s.boxes = map[*sandbox.Box]bool{}
	}
	s.boxes[box] = true
	return box, nil
}

// policy is that of the agent's commands: the host's, with the agent's own folders.
//
// Of a folder in place, which is the user's, the repository may only be read: git would run what a command puts into its configuration and its hooks,
// and the next git there is the user's, outside of any sandbox. What is mounted lies on top of the folder, and a mount cannot be moved away. That
// holds for the repository that is there when the first command starts. One that a command makes, one in a folder below, a .git that is a symlink, and
// whatever builds and tests run are for the user to look at before they are used.
func (s *Set) policy() sandbox.Policy {
	p, t := s.cfg.Policy, s.cfg.Tree
	reads := []string{s.own}
	if t.ReadOnly {
		reads = append(reads, t.Dir)
		p.Writable = append([]string{t.Scratch}, p.Writable...)
	} else {
		p.Writable = append([]string{t.Dir, t.Scratch}, p.Writable...)
	}
	if t.Objects != "" {
		reads = append(reads, t.Objects)
	}
	p.Readable = append(append(reads, s.keptGit()...), p.Readable...)
	return p
}

// keptGit is where the repository of the whole workspace is, as far as commands may read it and not write: in place, and where it is outside.
func (s *Set) keptGit() []string {
	c := &Call{Tree: s.cfg.Tree}
	r, err := c.repositoryAt(".")
	switch {
	case err == nil && r.linked && !s.cfg.Tree.InPlace:
		return []string{r.common}
	case err != nil || r.bare || !s.cfg.Tree.InPlace:
		return nil
	}
	kept := slices.Compact([]string{r.dir, r.common})
	if dot := filepath.Join(s.cfg.Tree.Dir, ".git"); r.dir != dot {
		if info, err := os.Lstat(dot); err == nil && info.Mode().IsRegular() {
			kept = append(kept, dot)
		}
	}
	return kept
}

// commitBox is a box for one commit, in which nothing but git runs, and nothing but the repository and temp can be written: a new folder for the
// commit, which no other box can write. End both with closeBox.
func (s *Set) commitBox(r repository) (box *sandbox.Box, temp string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, "", err
	}
	if temp, err = os.MkdirTemp(s.own, "commit-"); err != nil {
		return nil, "", err
	}
	if info, err := os.Stat(r.common); err == nil {
		giveLike(temp, info)
	}
	p, t := s.cfg.Policy, s.cfg.Tree
	p.Network, p.Proxy = "none", nil
	p.Writable = []string{r.common, temp}
	if !strings.HasPrefix(r.dir+"/", r.common+"/") { // a linked work tree without its repository
		p.Writable = append(p.Writable, r.dir)
	}
	p.Readable = []string{s.own, t.Dir}
	if t.Objects != "" {
		p.Readable = append(p.Readable, t.Objects)
	}
	if box, err = s.open(p); err != nil {
		_ = os.RemoveAll(temp)
	}
	return box, temp, err
}

// closeBox ends a box and removes its folder.
func (s *Set) closeBox(box *sandbox.Box, temp string) {
	s.mu.Lock()
	delete(s.boxes, box)
	s.mu.Unlock()
	box.Close()
	_ = os.RemoveAll(temp)
}

// giveLike gives a file of this process's to the owner of another, as whom a box works. Only root has boxes of another user, and may do it.
func giveLike(name string, other fs.FileInfo) {
	if st, ok := other.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		_ = os.Lchown(name, int(st.Uid), int(st.Gid))
	}
}
