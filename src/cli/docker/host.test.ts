import { expect, test } from 'vitest'
import { terraformHost } from '../helpers/terraform.ts'
import { configKey, registryOf } from './host.ts'

test.each([
  ['registry.example.com', 'registry.example.com'],
  ['https://Registry.Example.COM/v2/', 'registry.example.com'],
  ['registry.example.com:443', 'registry.example.com:443'],
  ['https://registry.example.com:443/', 'registry.example.com:443'],
  ['http://registry.example.com:80', 'registry.example.com:80'],
  ['[::1]:5000', '[::1]:5000'],
  ['docker.io', 'docker.io'],
  ['https://index.docker.io/v1/', 'docker.io'],
  ['registry-1.docker.io', 'docker.io'],
  ['evil-docker.io', 'evil-docker.io'],
  ['docker.io.evil.example', 'docker.io.evil.example'],
  ['docker.io@evil.example', undefined],
  ['user:password@registry.example.com', undefined],
  ['registry.example.com:99999', undefined],
  ['a b', undefined],
  ['*', undefined],
  ['', undefined],
])('%j is the registry %s', (text, host) => {
  expect(registryOf(text)).toBe(host)
})

test('docker names its own registry by an address', () => {
  expect([configKey('docker.io'), configKey('r.example')]).toEqual([
    'https://index.docker.io/v1/',
    'r.example',
  ])
})

test.each([
  ['App.Terraform.io', 'app.terraform.io'],
  ['app.terraform.io:443', 'app.terraform.io'],
  ['app.terraform.io:8443', 'app.terraform.io:8443'],
  ['app.terraform.io/x', undefined],
  ['a@b', undefined],
  ['', undefined],
  ['a b', undefined],
])('%j is the host %s of terraform', (text, host) => {
  expect(terraformHost(text)).toBe(host)
})
