package main

import (
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// Order is a row of the table orders.
type Order struct {
	ID    int64
	G     string
	N     *int64
	S     *string
	U     *string
	Items []Item
}

// Item is a row of the table items.
type Item struct {
	ID      int64
	OrderID int64
	S       string
}

// Plain is a row of the table without a rule.
type Plain struct {
	ID int64
	S  string
}

// TableName is not the plural that GORM would take.
func (Plain) TableName() string { return "plain" }

type orm struct{ db *gorm.DB }

func runORM(config *driver.Config) error {
	db, err := gorm.Open(mysql.New(mysql.Config{DSNConfig: config, DSN: config.FormatDSN()}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	o := orm{db}
	run([]scenario{
		{"single", o.single},
		{"batch", o.batch},
		{"children", o.children},
		{"rollback", o.rollback},
		{"upsert", o.upsert},
		{"failed", o.failed},
		{"explicit", o.explicit},
		{"mixed", o.mixed},
		{"plain", o.plain},
	})
	return nil
}

func pointer[T any](v T) *T { return &v }

func showPointer[T any](p *T) string {
	if p == nil {
		return "NULL"
	}
	return fmt.Sprint(*p)
}

func (o orm) rows(g string) error {
	var orders []Order
	if err := o.db.Where("g = ?", g).Order("id").Find(&orders).Error; err != nil {
		return err
	}
	for _, r := range orders {
		fmt.Printf("%s row=%d/%s/%s/%s\n", g, r.ID, showPointer(r.N), showPointer(r.S), showPointer(r.U))
	}
	return nil
}

func (o orm) single(g string) error {
	order := Order{G: g, N: pointer[int64](1), S: pointer(`it's \ ü`)}
	if err := o.db.Create(&order).Error; err != nil {
		return err
	}
	fmt.Printf("%s key=%d\n", g, order.ID)
	order.N = nil
	if err := o.db.Save(&order).Error; err != nil { // an upsert that names the id
		return err
	}
	return o.rows(g)
}

func (o orm) batch(g string) error {
	orders := []Order{{G: g, N: pointer[int64](1)}, {G: g}, {G: g, N: pointer[int64](3)}}
	result := o.db.Create(&orders)
	if result.Error != nil {
		return result.Error
	}
	fmt.Printf("%s keys=%d,%d,%d affected=%d\n", g, orders[0].ID, orders[1].ID, orders[2].ID, result.RowsAffected)
	more := []Order{{G: g}, {G: g}, {G: g}}
	if err := o.db.CreateInBatches(&more, 2).Error; err != nil {
		return err
	}
	fmt.Printf("%s keys=%d,%d key=%d\n", g, more[0].ID, more[1].ID, more[2].ID)
	return o.rows(g)
}

func (o orm) children(g string) error {
	order := Order{G: g, Items: []Item{{S: "a"}, {S: "b"}}}
	if err := o.db.Create(&order).Error; err != nil {
		return err
	}
	fmt.Printf("%s order=%d items=%d,%d of=%d\n", g, order.ID, order.Items[0].ID, order.Items[1].ID, order.Items[0].OrderID)
	return o.rows(g)
}

func (o orm) rollback(g string) error {
	back := errors.New("back")
	err := o.db.Transaction(func(tx *gorm.DB) error {
		order := Order{G: g}
		if err := tx.Create(&order).Error; err != nil {
			return err
		}
		fmt.Printf("%s key=%d\n", g, order.ID)
		return back
	})
	if !errors.Is(err, back) {
		return err
	}
	return o.rows(g)
}

func (o orm) upsert(g string) error {
	update := clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"n"})}
	for _, n := range []int64{1, 2, 2} {
		order := Order{G: g, N: &n, U: pointer("up")}
		result := o.db.Clauses(update).Create(&order)
		if result.Error != nil {
			return result.Error
		}
		fmt.Printf("%s key=%d affected=%d\n", g, order.ID, result.RowsAffected)
	}
	order := Order{G: g, U: pointer("up")}
	result := o.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&order) // id = id
	if result.Error != nil {
		return result.Error
	}
	fmt.Printf("%s key=%d affected=%d\n", g, order.ID, result.RowsAffected)
	found := Order{}
	if err := o.db.Where(Order{G: g, U: pointer("found")}).FirstOrCreate(&found).Error; err != nil {
		return err
	}
	fmt.Printf("%s key=%d\n", g, found.ID)
	return o.rows(g)
}

func (o orm) failed(g string) error {
	parent := Order{G: g, U: pointer("fail")}
	if err := o.db.Create(&parent).Error; err != nil {
		return err
	}
	if err := o.db.Create(&Order{G: g, U: pointer("fail")}).Error; err != nil {
		fmt.Printf("%s failed=%s\n", g, code(err))
	}
	if err := o.db.Exec("INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)", g).Error; err != nil {
		return err
	}
	var item Item
	if err := o.db.Last(&item).Error; err != nil {
		return err
	}
	fmt.Printf("%s parent=%d child=%d of=%d\n", g, parent.ID, item.ID, item.OrderID)
	return nil
}

func (o orm) explicit(g string) error {
	order := Order{ID: 42, G: g}
	if err := o.db.Create(&order).Error; err != nil {
		return err
	}
	fmt.Printf("%s key=%d\n", g, order.ID)
	return o.rows(g)
}

// mixed has GORM name the id, as DEFAULT where it is not set.
func (o orm) mixed(g string) error {
	orders := []Order{{ID: 61, G: g}, {G: g}, {G: g}}
	if err := o.db.Create(&orders).Error; err != nil {
		return err
	}
	fmt.Printf("%s key=%d key=%d key=%d\n", g, orders[0].ID, orders[1].ID, orders[2].ID)
	return o.rows(g)
}

func (o orm) plain(g string) error {
	row := Plain{S: g}
	err := o.db.Create(&row).Error
	fmt.Printf("%s key=%d\n", g, row.ID)
	return err
}
