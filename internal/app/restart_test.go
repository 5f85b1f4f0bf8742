package app

import (
	"context"
	"os"
	"reflect"
	"testing"

	"github.com/sluicehq/sluice/internal/config"
)

// TestKeepRestarted_KeepsAllThatDoesNotActLive: else a change that waits for a restart would be forgotten by the next one.
func TestKeepRestarted_KeepsAllThatDoesNotActLive(t *testing.T) {
	t.Parallel()
	old, other := &config.Loaded{Config: config.Default()}, &config.Loaded{Config: config.Default()}
	change(reflect.ValueOf(&other.Config).Elem())
	if changed := config.RestartNeeded(&old.Config, &other.Config); len(changed) < 20 {
		t.Fatalf("only %v differ", changed)
	}
	kept := keepRestarted(old, other)
	if lost := config.RestartNeeded(&old.Config, &kept.Config); len(lost) > 0 {
		t.Errorf("the old values of %v are not kept", lost)
	}
	if kept.Config.Enabled == old.Config.Enabled || kept.Config.Log.Level == old.Config.Log.Level {
		t.Error("what acts live is not taken over")
	}
}

// TestWatchFile_FindsAChangeMadeWhileTheNodeStarted: between reading the file and watching it.
func TestWatchFile_FindsAChangeMadeWhileTheNodeStarted(t *testing.T) {
	t.Parallel()
	loaded, err := written(t, "node = 'a'\n")()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(loaded.Path, []byte("node = 'b'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &App{}
	a.config.Store(loaded)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	noticed := 0
	a.watchFile(ctx, loaded.Path, func() {
		noticed++
		stop()
	})
	if noticed != 1 {
		t.Errorf("noticed %d times, want once", noticed)
	}
}

// change gives every field another value.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				change(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	default: // lists and tables act live
	}
}
