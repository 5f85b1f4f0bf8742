package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/config"
)

// databaseFlags say which database a command connects to by itself, without a node.
type databaseFlags struct {
	as           string // the role to show in examples
	url, urlFile string
}

// addTo adds the flags. What tells which database is meant.
func (f *databaseFlags) addTo(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.url, "url", "", what+": "+f.example())
	cmd.Flags().StringVar(&f.urlFile, "url-file", "", "a file that holds the URL")
}

func (f *databaseFlags) example() string { return "postgres://" + f.as + "@host:5432/sluice" }

// read returns the URL: the one that is named, else that of the configuration.
func (f *databaseFlags) read(flags *config.Flags) (string, error) {
	if f.url != "" && f.urlFile != "" { // cobra's own check would not be told apart from other errors
		return "", usageError{errors.New("--url and --url-file are both given: name one of them")}
	}
	if f.urlFile != "" {
		text, err := os.ReadFile(filepath.Clean(f.urlFile))
		return strings.TrimSpace(string(text)), err
	}
	if f.url != "" {
		return f.url, f.checkNoPassword()
	}
	loaded, err := config.Load(flags.Options())
	if err != nil {
		return "", err
	}
	if loaded.Config.Database.URL == "" {
		return "", usageError{fmt.Errorf("name the database by --url or --url-file, such as %s", f.example())}
	}
	return signedBy(loaded.Config.Database.URL, loaded.Config.Database.CAFile)
}

// checkNoPassword refuses what everybody on the machine could read in its list of processes.
func (f *databaseFlags) checkNoPassword() error {
	u, err := url.Parse(f.url)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return usageError{fmt.Errorf("--url cannot be read: want %s", f.example())}
	}
	if _, secret := u.User.Password(); secret || u.Query().Has("password") {
		return usageError{errors.New("--url holds a password, which does not belong on the command line: use --url-file, PGPASSWORD or ~/.pgpass")}
	}
	return nil
}

// signedBy adds what database.ca_file says to the URL.
func signedBy(text, caFile string) (string, error) {
	if caFile == "" {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("database.url cannot be read: want postgres://user:password@host:5432/database")
	}
	how := u.Query()
	how.Set("sslmode", "verify-full")
	how.Set("sslrootcert", caFile)
	u.RawQuery = how.Encode()
	return u.String(), nil
}
