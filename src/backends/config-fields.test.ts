import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import {
  applyDefaults,
  findStrayedSecrets,
  keepSecrets,
  redactConfig,
  secretFields,
  validateConfig,
} from './config-fields.ts'
import { kinds } from './index.ts'
import { DESTINATION_MARK, destinationField, secretField } from './kind.ts'

const schema = Type.Object({
  host: Type.String({ minLength: 1, maxLength: 10 }),
  port: Type.Integer({ default: 5432, minimum: 1 }),
  mode: Type.Union([Type.Literal('fast'), Type.Literal('safe')], { default: 'safe' }),
  list: Type.Optional(Type.Array(Type.String())),
  password: Type.Optional(Type.String(secretField({ maxLength: 5 }))),
  key: Type.Optional(Type.String(secretField({}))),
})
const HIDDEN = '[redacted]'

describe('secret fields', () => {
  it('are found, hidden when present, and kept when left out or sent back hidden', () => {
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

  it('do not stray to where the rest of the configuration would have them sent', () => {
    const home = Type.Object({
      host: Type.String(destinationField({})),
      port: Type.Integer(destinationField({ default: 5432 })),
      ca: Type.Optional(Type.String(destinationField({}))),
      note: Type.Optional(Type.String()),
      password: Type.Optional(Type.String(secretField({}))),
    })
    const before = { host: 'h', port: 5432, password: 'pw' }
    const strayed = (after: object) => findStrayedSecrets(home, before, { ...after })?.changed
    for (const after of [{ host: 'h' }, { host: 'h', port: 5432, password: HIDDEN, note: 'n' }])
      expect(strayed(after)).toBeUndefined()
    expect(strayed({ host: 'other', password: HIDDEN })).toEqual(['host'])
    expect(strayed({ host: 'h', port: 1, ca: 'mine' })).toEqual(['port', 'ca'])
    expect(strayed({})).toEqual(['host'])
    expect(strayed({ host: 'other', password: 'given again' })).toBeUndefined()
    expect(findStrayedSecrets(home, { host: 'h', port: 5432 }, { host: 'other' })).toBeUndefined()
  })

  it('are marked on the built-in kinds', () => {
    const found = kinds.map((kind) => [kind.type, secretFields(kind.config)])
    expect(found).toEqual([
      ['jwt', ['signing_key']],
      ['postgres', ['password']],
    ])
    // Of a kind that sends its secrets somewhere, the fields that say where.
    const where = kinds.map(({ type, config }) => [
      type,
      Object.keys(config.properties).filter((name) => DESTINATION_MARK in (config.properties[name] ?? {})),
    ])
    expect(where).toEqual([
      ['jwt', []],
      ['postgres', ['host', 'port', 'tls', 'ca', 'local']],
    ])
  })
})

describe('the check of a configuration', () => {
  it('passes what is right once the defaults are in', () => {
    const given = { host: 'h' }
    const full = applyDefaults(schema, given)
    expect(full).toEqual({ host: 'h', port: 5432, mode: 'safe' })
    expect(given).toEqual({ host: 'h' })
    expect(validateConfig(schema, full)).toEqual([])
  })

  it('names every fault by its path, and repeats nothing that was sent', () => {
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

  it('tells more faults than a validator collects in one go', () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`f${index}`, Type.String()]))
    const wrong = Object.fromEntries(Object.keys(many).map((name) => [name, 1]))
    expect(validateConfig(Type.Object(many), wrong)).toHaveLength(30)
    expect(validateConfig(Type.Object(many), {})).toHaveLength(30)
  })

  it('does not take what objects inherit for fields', () => {
    const inherited = JSON.parse('{"host":"h","port":1,"mode":"safe","__proto__":1,"constructor":2}')
    expect(validateConfig(schema, inherited)).toEqual([expect.stringMatching(/^There is an unknown field/)])
  })

  it.each([null, 5, 'x', [], undefined])('refuses %j as a whole', (value) => {
    expect(validateConfig(schema, applyDefaults(schema, value)).length).toBeGreaterThan(0)
  })

  it('says nothing of hostile names, however deep', () => {
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
