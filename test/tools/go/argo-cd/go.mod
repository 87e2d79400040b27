module keelson.dev/tools/argo-cd

go 1.25.0

require github.com/argoproj/argo-cd/v3 v3.2.0
