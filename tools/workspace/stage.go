package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	run "muster/tools/git"
)

// maxFileBytes is the largest file that a commit or a patch takes: a sparse file may claim any size.
const maxFileBytes = 4 << 30

// Left is a file that a commit or a patch does not hold, and why.
type Left struct {
	Path string // relative to the root, /
	Why  string
}

// Reasons of Left.
const (
	leftNested     = "nested repository"
	leftUnreadable = "unreadable"
	leftSpecial    = "special file"
	leftTooLarge   = "larger than 4 GiB"
	leftName       = "a name that git does not take"
)

// candidate is a path whose content may differ from the index.
type candidate struct {
	path string
	mode string // in the index; "" for untracked
}

// staging brings an index up to what a folder holds. git only ever lists: file contents are opened by us, through
// the folder's root, and reach git as bytes, so neither an attribute nor a swapped symlink nor a FIFO has any power.
type staging struct {
	g        git // with workTree and index set
	root     *area
	excludes []string
	fileMode bool
	nested   func(submodule string) bool // whether a submodule is to be named as left out; nil for never

	fifo bool // a FIFO stands where git would open a file for rules
	list []candidate
	seen map[string]bool
	left []Left
}

// stage runs the staging and returns what it had to leave out.
func (s *staging) stage(ctx context.Context) ([]Left, error) {
	s.seen = map[string]bool{}
	if err := s.listChanged(ctx); err != nil {
		return nil, err
	}
	if err := s.listUntracked(ctx); err != nil {
		return nil, err
	}
	if len(s.list) == 0 {
		return s.left, nil
	}
	entries, err := "", error(nil)
	for before, tries := len(s.left), 0; tries < 3; tries++ {
		s.left = s.left[:before]
		if entries, err = s.store(ctx); !errors.Is(err, ErrChanged) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	bare := s.g
	bare.workTree = ""
	err = bare.run(ctx, strings.NewReader(entries), nil, "update-index", "-z", "--index-info")
	return s.left, err
}

func (s *staging) add(c candidate) {
	if !s.seen[c.path] {
		s.seen[c.path] = true
		s.list = append(s.list, c)
	}
}

// listChanged finds tracked files that differ from the index in what stat tells, and those that the user told git
// not to look at (assume-unchanged). Submodules are named, and stay as the index has them.
func (s *staging) listChanged(ctx context.Context) error {
	err := s.g.each(ctx, 0, func(line string) error {
		// "H 100644 <id> 0\t<path>"; the letter is small for assume-unchanged
		head, name, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 4 {
			return fmt.Errorf("git ls-files: cannot read %q", line)
		}
		switch tag, mode := fields[0], fields[1]; {
		case mode == "160000":
			if s.nested != nil && s.nested(name) {
				s.left = append(s.left, Left{name, leftNested})
			}
		case tag == "h":
			s.add(candidate{name, mode})
		}
		return nil
	}, "ls-files", "-z", "-v", "-s")
	if err != nil {
		return err
	}
	meta := ""
	return s.g.each(ctx, 0, func(piece string) error {
		if meta == "" {
			meta = piece
			return nil
		}
		// ":<old mode> <new mode> <old id> <new id> <letter>"
		fields := strings.Fields(meta)
		meta = ""
		if len(fields) != 5 {
			return fmt.Errorf("git diff-files: cannot read %q", piece)
		}
		mode := strings.TrimPrefix(fields[0], ":")
		if fields[4] == "U" {
			mode = "100644" // a conflict: what the folder holds now settles it
		}
		s.add(candidate{piece, mode})
		return nil
	}, "diff-files", "-z", "--raw", "--no-renames", "--ignore-submodules=all")
}

// listUntracked finds files that are neither tracked nor ignored.
func (s *staging) listUntracked(ctx context.Context) error {
	if err := s.survey(); err != nil {
		return err
	}
	args := []string{"ls-files", "-z", "-o"}
	if !s.fifo {
		args = append(args, "--exclude-per-directory=.gitignore")
	}
	for _, f := range s.excludes {
		args = append(args, "--exclude-from="+f)
	}
	return s.g.each(ctx, 0, func(name string) error {
		switch {
		case strings.HasSuffix(name, "/"):
			s.left = append(s.left, Left{strings.TrimSuffix(name, "/"), leftNested})
		case !gitTakes(name):
			s.left = append(s.left, Left{name, leftName})
		default:
			s.add(candidate{path: name})
		}
		return nil
	}, args...)
}

// survey walks the folder for what git does not tell: folders that cannot be read, which are named, and whether some
// file of rules is a FIFO, which git would open and wait on for ever. Rules are then not asked for: more is kept,
// nothing is lost.
func (s *staging) survey() error {
	return filepath.WalkDir(s.root.real, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && d != nil && d.IsDir():
			if rel, rerr := filepath.Rel(s.root.real, name); rerr == nil && !errors.Is(err, fs.ErrNotExist) {
				s.left = append(s.left, Left{rel, leftUnreadable})
			}
			return fs.SkipDir
		case err != nil && name == s.root.real:
			return err
		case err != nil:
			return nil
		case d.Name() == ".git" && name != s.root.real:
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type()&fs.ModeNamedPipe != 0 && (d.Name() == ".gitignore" || d.Name() == ".gitattributes"):
			s.fifo = true
		}
		return nil
	})
}

// unseen are characters that a Mac's file system leaves out when it compares names.
var unseen = strings.NewReplacer("\u200c", "", "\u200d", "", "\u200e", "", "\u200f", "", "\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "",
	"\u202e", "", "\u206a", "", "\u206b", "", "\u206c", "", "\u206d", "", "\u206e", "", "\u206f", "", "\ufeff", "")

// filled reports whether a folder holds anything.
func (a *area) filled(rel string) bool {
	dir, err := place{a, rel}.pin()
	if err != nil {
		return false
	}
	defer dir.Close()
	self, err := dir.Open(".")
	if err != nil {
		return false
	}
	defer self.Close()
	names, _ := self.Readdirnames(1)
	return len(names) > 0
}

// gitTakes reports whether a name can stand in a commit: git, and our own check of what comes in, refuse what some
// system would take for a repository.
func gitTakes(name string) bool {
	for part := range strings.FieldsFuncSeq(unseen.Replace(strings.ToLower(name)), func(r rune) bool { return r == '/' || r == '\\' }) {
		part, _, _ = strings.Cut(part, ":")
		if part = strings.TrimRight(part, " ."); part == ".git" || part == "git~1" {
			return false
		}
	}
	return true
}

// store writes the candidates' contents into the repository, and returns the lines that bring the index up to them:
// removals first, since a folder may have become a file.
func (s *staging) store(ctx context.Context) (string, error) {
	var removals, additions strings.Builder
	var kept []struct{ mode, path string }
	none := strings.Repeat("0", 40)
	if s.g.isSHA256() {
		none = strings.Repeat("0", 64)
	}
	blobs, feed := io.Pipe()
	fed := make(chan error, 1)
	go func() {
		for _, c := range s.list {
			mode, why, err := s.feed(feed, c)
			if err != nil {
				fed <- err
				feed.CloseWithError(err)
				return
			}
			if why != "" {
				s.left = append(s.left, Left{c.path, why})
			}
			switch {
			case mode != "":
				kept = append(kept, struct{ mode, path string }{mode, c.path})
			case c.mode != "" && why != leftUnreadable && why != leftTooLarge:
				fmt.Fprintf(&removals, "0 %s\t%s\x00", none, c.path)
			}
		}
		_, err := io.WriteString(feed, "done\n")
		fed <- err
		feed.Close()
	}()
	var ids []string
	answers := &run.Records{End: '\n', Fn: func(id string) error {
		ids = append(ids, id)
		return nil
	}}
	bare := s.g
	bare.workTree = ""
	err := bare.run(ctx, blobs, answers, "fast-import", "--quiet", "--done")
	blobs.Close()
	if ferr := <-fed; ferr != nil && (err == nil || !errors.Is(ferr, io.ErrClosedPipe)) {
		err = ferr
	}
	if err != nil {
		return "", err
	}
	if len(ids) != len(kept) {
		return "", fmt.Errorf("git fast-import: %d answers for %d files", len(ids), len(kept))
	}
	for i, k := range kept {
		fmt.Fprintf(&additions, "%s %s\t%s\x00", k.mode, ids[i], k.path)
	}
	return removals.String() + additions.String(), nil
}

// feed writes one file to fast-import. It returns the mode of the entry, "" for none, and why something was left out.
func (s *staging) feed(w io.Writer, c candidate) (mode, why string, err error) {
	info, err := s.root.root.Lstat(c.path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", leftUnreadable, nil
	case err != nil:
		return "", "", nil // gone, or below what is no folder any more
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := s.root.root.Readlink(c.path)
		if err != nil {
			return "", leftUnreadable, nil
		}
		if strings.EqualFold(path.Base(c.path), ".gitmodules") {
			return "", leftName, nil
		}
		return "120000", "", blob(w, strings.NewReader(target), int64(len(target)))
	case info.IsDir():
		return "", "", nil
	case !info.Mode().IsRegular():
		return "", leftSpecial, nil
	}
	f, err := s.root.root.OpenFile(c.path, openFlags, 0)
	if err != nil {
		return "", leftUnreadable, nil
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", leftSpecial, nil
	}
	if info.Size() > maxFileBytes {
		return "", leftTooLarge, nil
	}
	return s.modeOf(info, c), "", blob(w, f, info.Size())
}

func (s *staging) modeOf(info fs.FileInfo, c candidate) string {
	if !s.fileMode {
		if c.mode == "100755" {
			return c.mode
		}
		return "100644"
	}
	if info.Mode()&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

// blob writes one blob of exactly size bytes. A file that shrinks meanwhile is an error: there is no state of it to
// keep.
func blob(w io.Writer, r io.Reader, size int64) error {
	if _, err := io.WriteString(w, "blob\nmark :1\ndata "+strconv.FormatInt(size, 10)+"\n"); err != nil {
		return err
	}
	n, err := io.CopyN(w, r, size)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: a file shrank to %d of %d bytes while it was read; try again", ErrChanged, n, size)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\nget-mark :1\n")
	return err
}

// isSHA256 reports whether the repository names objects by SHA-256.
func (g git) isSHA256() bool {
	config, err := os.ReadFile(filepath.Join(g.dir, "config"))
	return err == nil && strings.Contains(strings.ToLower(string(config)), "objectformat = sha256")
}
