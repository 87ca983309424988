package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// store gives the trusted repository of an object format, made when it is first needed.
func (c *Cache) store(ctx context.Context, format string) (git, error) {
	dir := filepath.Join(c.dir, "store-"+format+".git")
	if _, err := os.Stat(dir); err == nil {
		return git{dir: dir}, nil
	}
	lock, err := lockFile(ctx, dir+".lock", false, true)
	if err != nil {
		return git{}, err
	}
	defer lock.Close()
	if _, err := os.Stat(dir); err == nil {
		return git{dir: dir}, nil
	}
	// Made beside and renamed, so that a store is whole or not there.
	fresh := dir + ".new"
	err = removeTree(fresh)
	if err == nil {
		err = initBare(ctx, fresh, format)
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return git{}, fmt.Errorf("make store: %w", err)
	}
	return git{dir: dir}, nil
}

// harmlessFaults are faults that real histories have, made by old programs; they mislead nobody. Everything else
// that fsck finds in a bundle refuses it.
const harmlessFaults = "badDate=ignore,badDateOverflow=ignore,badEmail=ignore,badName=ignore,badTagName=ignore,badTimezone=ignore," +
	"missingEmail=ignore,missingNameBeforeEmail=ignore,missingSpaceBeforeDate=ignore,missingSpaceBeforeEmail=ignore," +
	"missingTaggerEntry=ignore,multipleAuthors=ignore,nulInCommit=ignore,zeroPaddedDate=ignore,zeroPaddedFilemode=ignore"

// have makes sure that the store holds a commit, and calls fetch for its bundle where it does not; the bundle stands
// in the folder temp meanwhile. Whoever wants the same commit waits, and finds it there.
func (c *Cache) have(ctx context.Context, commit, temp string, fetch func(io.Writer) error) (git, error) {
	g, err := c.store(ctx, formatOf(commit))
	if err != nil {
		return git{}, err
	}
	lock, err := lockFile(ctx, filepath.Join(c.dir, "import-"+commit+".lock"), false, true)
	if err != nil {
		return git{}, err
	}
	defer lock.Close()
	defer os.Remove(lock.Name())
	ref := "refs/muster/" + commit
	if got, err := g.text(ctx, "rev-parse", "-q", "--verify", ref); err == nil && got == commit {
		return g, nil
	}
	if fetch == nil {
		return git{}, fmt.Errorf("commit %s is not in the cache, and there is nothing to fetch it with", commit)
	}
	bundle, err := os.CreateTemp(temp, "bundle-*")
	if err != nil {
		return git{}, err
	}
	defer os.Remove(bundle.Name())
	err = fetch(bundle)
	if cerr := bundle.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return git{}, fmt.Errorf("fetch commit %s: %w", commit, err)
	}
	if err := g.bring(ctx, bundle.Name(), commit); err != nil {
		if ctx.Err() != nil {
			return git{}, err
		}
		return git{}, fmt.Errorf("bundle of commit %s: %w", commit, err)
	}
	return g, g.run(ctx, nil, nil, "update-ref", ref, commit)
}

// bring takes the pack out of a bundle into the repository. It does not leave that to `git fetch`, which asks fsck
// nothing about what comes in a bundle (seen with git 2.39): here every object is checked, and that none is missing.
func (g git) bring(ctx context.Context, bundle, commit string) error {
	f, err := os.Open(bundle)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if err := readBundleHead(r, commit); err != nil {
		return err
	}
	if err := g.run(ctx, r, nil, "index-pack", "--stdin", "--strict="+harmlessFaults); err != nil {
		return err
	}
	kind, err := g.text(ctx, "cat-file", "-t", commit)
	if err != nil || kind != "commit" {
		return fmt.Errorf("%w: asked for %s", ErrNoCommit, commit)
	}
	return nil
}

// readBundleHead reads a bundle up to its pack: a line with the format, capabilities, one line for each commit and
// ref, and an empty one.
func readBundleHead(r *bufio.Reader, commit string) error {
	want := commit + " refs/muster/" + commit
	found := false
	for i := 0; ; i++ {
		line, err := r.ReadSlice('\n')
		if err != nil || i > 1000 {
			return errors.New("it is no git bundle")
		}
		text := strings.TrimSuffix(string(line), "\n")
		switch {
		case i == 0:
			if text != "# v2 git bundle" && text != "# v3 git bundle" {
				return errors.New("it is no git bundle")
			}
		case text == "":
			if !found {
				return fmt.Errorf("%w: asked for %s", ErrNoCommit, commit)
			}
			return nil
		case strings.HasPrefix(text, "-"):
			return errors.New("it builds on commits that it does not hold")
		case text == want:
			found = true
		}
	}
}
