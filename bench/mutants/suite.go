package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/redisstore"
)

// storetest runs under the testing package only, so a test binary of this package (suite_test.go) is built once and run
// for each mutant that got so far, on a Redis of its own.

// The environment tells the test which script to put in the place of the one of that name.
const (
	envName = "SLUICE_MUTANT_NAME"
	envFile = "SLUICE_MUTANT_FILE"
)

// suiteTime bounds one run of the suite, which takes about a second.
const suiteTime = time.Minute

// suite is the built test binary.
type suite struct{ binary, dir string }

func buildSuite(dir string) (*suite, error) {
	s := &suite{filepath.Join(dir, "suite.test"), dir}
	out, err := exec.Command("go", "test", "-c", "-o", s.binary, "github.com/sluicehq/sluice/bench/mutants").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("build the suite: %w\n%s", err, out)
	}
	return s, nil
}

// passes tells whether every promise of storetest holds with a script in place of the one of its name.
func (s *suite) passes(script *redisstore.Script) (bool, error) {
	file := filepath.Join(s.dir, script.SHA+".lua")
	if err := os.WriteFile(file, []byte(script.Text), 0o600); err != nil {
		return false, err
	}
	defer os.Remove(file)
	ctx, cancel := context.WithTimeout(context.Background(), suiteTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "-test.run=^TestStore$", "-test.failfast", "-test.count=1")
	cmd.Env = append(os.Environ(), envName+"="+script.Name, envFile+"="+file)
	err := cmd.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}
