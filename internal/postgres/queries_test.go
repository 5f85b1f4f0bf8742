package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/testpg"
)

func TestQueries_CanAllBePreparedAsTheApplication(t *testing.T) {
	t.Parallel()
	conn := session(t, testpg.New(t), testpg.App)
	files, err := filepath.Glob("queries/*.sql")
	if err != nil || len(files) < 40 {
		t.Fatalf("found %d statements (%v)", len(files), err)
	}
	table, err := os.ReadFile("queries/import_table.sql") // two of the statements are about the table that this one makes
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), strings.Replace(string(table), "ON COMMIT DROP", "", 1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Prepare(t.Context(), name, string(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
