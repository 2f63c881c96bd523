module example.org/go-shop

go 1.19
