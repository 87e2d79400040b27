//go:build tools

package tools

import _ "go.universe.tf/metallb/controller"
