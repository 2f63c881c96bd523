"""Payments: a business account's connections to payment gateways; orders that phones pay and businesses refund."""
