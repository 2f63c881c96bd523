"""Probes: is the process alive, and can it do its work?"""
