import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../src/config/load.ts'
import { FIELDS } from '../src/config/schema.ts'
import { EXAMPLE, renderConfigPage, renderConfigSchema, stalePages } from './generate-docs.ts'

test('the committed pages are up to date: run `npm run docs`', async () => {
  expect(await stalePages()).toEqual([])
})

test('the configuration page lists every setting with its variable and its flag', () => {
  const page = renderConfigPage()
  for (const { path, env, flag, description } of FIELDS) {
    expect(page).toContain(description.replaceAll('|', '\\|'))
    if (path !== 'policies') expect(page).toMatch(new RegExp(`^\\| \`${path}\` +\\|`, 'm'))
    if (env !== undefined) expect(page).toContain(`\`${env}\``)
    if (flag !== undefined) expect(page).toContain(`\`--${flag}\``)
  }
})

test('the example is a valid configuration, and the schema has its keys', async () => {
  const yaml = EXAMPLE.replace(/^```.*$/gm, '')
  const { config } = await loadConfig({
    argv: { config: 'x' },
    env: {},
    readFile: async () => Buffer.from(yaml),
  })
  expect(config.policies).toHaveLength(1)
  const schema = JSON.parse(renderConfigSchema())
  expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(parse(yaml))))
})

test('the schema has neither our own keywords nor settings that a file cannot hold', () => {
  const text = renderConfigSchema()
  expect(text).not.toContain('"x-')
  const { properties, additionalProperties } = JSON.parse(text)
  expect(additionalProperties).toBe(false)
  expect(properties).not.toHaveProperty('master_key')
  expect(properties).not.toHaveProperty('quickstart')
  expect(properties.limits.properties.max_connections).toMatchObject({ type: 'integer', default: 10_000 })
})
