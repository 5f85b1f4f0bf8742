// Package sluicev1 is the gRPC API as generated from api/proto: messages, clients and the servers' interfaces. Programs
// that only want to ask use package grpclimit.
package sluicev1
