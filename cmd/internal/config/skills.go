package config

import (
	"os"
	"path/filepath"

	"github.com/adrg/xdg"
)

// SkillFolders are the folders of this user's own skills, the first wins. They need not be there.
func SkillFolders() []string {
	var folders []string
	if filepath.IsAbs(os.Getenv("XDG_CONFIG_HOME")) || filepath.IsAbs(os.Getenv("HOME")) {
		folders = append(folders, filepath.Join(xdg.ConfigHome, "muster", "skills"))
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		folders = append(folders, filepath.Join(home, ".muster", "skills"), filepath.Join(home, ".agents", "skills"), filepath.Join(home, ".claude", "skills"))
	}
	return folders
}
