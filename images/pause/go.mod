module keelson/pause

go 1.21
