//go:build !unix

package httpserver

func descriptors() int { return plenty }
