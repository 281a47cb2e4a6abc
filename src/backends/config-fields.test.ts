import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import {
  applyDefaults,
  findExposed,
  findMove,
  keepSecrets,
  redactConfig,
  secretFields,
  validateConfig,
} from './config-fields.ts'
import { protectionField, secretField, upstreamField } from './kind.ts'

const schema = Type.Object({
  host: Type.String(upstreamField({ minLength: 1, maxLength: 10 })),
  port: Type.Integer({ default: 5432, minimum: 1 }),
  mode: Type.Union([Type.Literal('fast'), Type.Literal('safe')], { default: 'safe' }),
  list: Type.Optional(Type.Array(Type.String())),
  password: Type.Optional(Type.String(secretField({ maxLength: 5 }))),
  key: Type.Optional(Type.String(secretField({}))),
})
const HIDDEN = '[redacted]'

describe('secret fields', () => {
  it('are found, redacted when present, and kept when left out or sent back redacted', () => {
    expect(secretFields(schema)).toEqual(['password', 'key'])
    const config = { host: 'h', password: 'pw' }
    expect(redactConfig(schema, config)).toEqual({ host: 'h', password: HIDDEN })
    expect(config.password).toBe('pw')
    expect(keepSecrets(schema, config, { host: 'n' })).toEqual({ host: 'n', password: 'pw' })
    expect(keepSecrets(schema, config, { host: 'n', password: HIDDEN, key: HIDDEN })).toEqual({
      host: 'n',
      password: 'pw',
    })
    expect(keepSecrets(schema, config, { password: 'new' })).toEqual({ password: 'new' })
    expect(keepSecrets(schema, config, { host: HIDDEN })).toEqual({ host: HIDDEN, password: 'pw' })
  })

  it('are not shown after the schema has given them another name', () => {
    const renamed = Type.Object({ host: Type.String(), passphrase: Type.String(secretField({})) })
    const config = { host: 'h', password: 'stored under the old name' }
    expect(redactConfig(renamed, config)).toEqual({ host: 'h' })
  })

  it('are reported when a kept one would be sent elsewhere, or with less protection', () => {
    const way = Type.Object({ ...schema.properties, ca: Type.Optional(Type.String(protectionField({}))) })
    const before = { host: 'h', mode: 'safe', password: 'pw' }
    const exposed = (given: object) =>
      findExposed(way, before, { ...given }, keepSecrets(way, before, { ...given }))
    for (const given of [{ host: 'h' }, { host: 'h', password: HIDDEN, mode: 'fast' }])
      expect(exposed(given)).toBeUndefined()
    expect(exposed({ host: 'n' })).toEqual({ secret: 'password', by: 'host' })
    expect(exposed({ host: 'n', password: HIDDEN })).toEqual({ secret: 'password', by: 'host' })
    expect(exposed({ host: 'h', ca: 'mine' })).toEqual({ secret: 'password', by: 'ca' })
    expect(exposed({ host: 'n', password: 'given again' })).toBeUndefined()
    expect(findMove(way, before, { ...before, host: 'n' })).toBe('host')
    expect(findMove(way, before, { ...before, ca: 'mine' })).toBeUndefined()
  })
})

describe('the check of a configuration', () => {
  it('accepts a valid configuration once the defaults are filled in', () => {
    const given = { host: 'h' }
    const full = applyDefaults(schema, given)
    expect(full).toEqual({ host: 'h', port: 5432, mode: 'safe' })
    expect(given).toEqual({ host: 'h' })
    expect(validateConfig(schema, full)).toEqual([])
  })

  it('names every fault by its path, and repeats no value sent', () => {
    const faults = validateConfig(schema, {
      port: 'SECRET1',
      mode: 'SECRET2',
      list: ['a', 7],
      password: 'SECRET3',
      SECRET5: 'SECRET4',
    })
    expect(faults.join('\n')).not.toContain('SECRET')
    expect(faults).toEqual([
      `There is an unknown field; it takes ${Object.keys(schema.properties).join(', ')}`,
      '"host" is required',
      '"port" must be integer',
      '"mode" must be one of "fast", "safe"',
      '"list/1" must be string',
      expect.stringMatching(/^"password" must/),
    ])
  })

  it('reports more faults than the validator collects at once', () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${index}`, Type.String()]))
    const wrong = Object.fromEntries(Object.keys(many).map((name) => [name, 1]))
    expect(validateConfig(Type.Object(many), wrong)).toHaveLength(30)
    expect(validateConfig(Type.Object(many), {})).toHaveLength(30)
  })

  it('does not mistake inherited properties for fields', () => {
    const inherited = JSON.parse('{"host":"h","port":1,"mode":"safe","__proto__":1,"constructor":2}')
    expect(validateConfig(schema, inherited)).toEqual([expect.stringMatching(/^There is an unknown field/)])
  })

  it.each([null, 5, 'x', [], undefined])('refuses %j as a whole', (value) => {
    expect(validateConfig(schema, applyDefaults(schema, value)).length).toBeGreaterThan(0)
  })

  it('does not repeat hostile names, however deep', () => {
    const nested = Type.Object({
      map: Type.Record(Type.String(), Type.Integer()),
      one: Type.Object({ a: Type.Integer() }, { additionalProperties: false }),
    })
    const hostile = `\u001b[2J\n${'x'.repeat(500)}`
    const faults = validateConfig(nested, { [hostile]: 1, map: { 'x;y': '1' }, one: { [hostile]: 1 } })
    expect(faults).toEqual([
      'There is an unknown field; it takes map, one',
      '"map/*" must be integer',
      '"one/a" is required',
      '"one" has an unknown field',
    ])
  })
})
