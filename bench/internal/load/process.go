package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ProcessCPU is what a process has used so far, in the kernel's ticks of 10 ms; 0 when it is gone.
func ProcessCPU(pid int) time.Duration { return processTicks(pid, 2) }

// processTicks sums the times of a process: its own as a user and in the kernel, then the same of its children that have ended.
func processTicks(pid, times int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const first = 11 // after the name
	if len(fields) < first+times {
		return 0
	}
	total := int64(0)
	for _, field := range fields[first : first+times] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		total += ticks
	}
	return time.Duration(total) * 10 * time.Millisecond
}

// FamilyCPU is what a process, its children and those of them that have ended have used so far.
func FamilyCPU(pid int) time.Duration {
	total := processTicks(pid, 4)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		id, _ := strconv.Atoi(child)
		total += processTicks(id, 2)
	}
	return total
}

// ProcessMemory is what a process has resident, in bytes; 0 when it is gone.
func ProcessMemory(pid int) int64 { return statusBytes(pid, "VmRSS:") }

// PeakMemory is the most that a process ever had resident, in bytes; 0 when it is gone.
func PeakMemory(pid int) int64 { return statusBytes(pid, "VmHWM:") }

func statusBytes(pid int, field string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), field)
	var kb int64
	_, _ = fmt.Sscan(rest, &kb)
	return kb << 10
}
