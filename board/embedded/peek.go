package embedded

import "path/filepath"

// Peek says where the server of a data folder listened last, and with which key file one connects to it: whether it still does, only a
// connection tells. Nothing is started and nothing made. fs.ErrNotExist where no server ever ran on the folder.
func Peek(dir string) (url, key string, err error) {
	in, err := readInfo(dir)
	return in.URL, filepath.Join(dir, keyFile), err
}
