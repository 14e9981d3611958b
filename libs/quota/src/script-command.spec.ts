import { Command } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { encodeCommand, ScriptCommand } from './script-command.js';

describe('encodeCommand', () => {
  it('writes texts and bytes as bulk strings, with lengths in bytes', () => {
    const bytes = Buffer.from([0, 255, 13, 10]);
    expect(encodeCommand('eval', ['né', bytes, '', '💧'])).toEqual(
      Buffer.concat([
        Buffer.from('*5\r\n$4\r\neval\r\n$3\r\nné\r\n$4\r\n'),
        bytes,
        Buffer.from('\r\n$0\r\n\r\n$4\r\n💧\r\n'),
      ]),
    );
  });

  it('leaves what it wrote before alone, however much comes after', () => {
    const texts = Array.from({ length: 500 }, (_, index) => '水'.repeat(index));
    const written = texts.map((text) => encodeCommand('x', [text]));
    const huge = encodeCommand('x', ['x'.repeat(1_000_000)]);
    written.forEach((bytes, index) => {
      expect(bytes.toString()).toBe(`*2\r\n$1\r\nx\r\n$${index * 3}\r\n${texts[index]}\r\n`);
    });
    expect(huge.length).toBe(1_000_000 + '*2\r\n$1\r\nx\r\n$1000000\r\n\r\n'.length);
  });
});

describe('ScriptCommand', () => {
  it('is written as ioredis writes the same call', () => {
    const args = ['epoch', Buffer.from([1, 128, 254]), '{"name":"Straße"}', Buffer.alloc(0)];
    const command = new ScriptCommand('evalsha', 'abc', ['{s}:one', '{s}:two'], args);
    const theirs = new Command('evalsha', ['abc', '2', '{s}:one', '{s}:two', ...args]);
    expect(command.toWritable()).toEqual(theirs.toWritable({}));
    expect(command.getKeys()).toEqual(['{s}:one', '{s}:two']);
  });

  it('takes the fence for the first key and argument, also where a cluster asks which slot it is for', () => {
    const fence = { key: '{t}:epoch', epoch: '7' };
    const command = new ScriptCommand('evalsha', 'abc', ['{s}:one'], ['x'], fence);
    const theirs = new Command('evalsha', ['abc', '2', '{t}:epoch', '{s}:one', '7', 'x']);
    expect(command.toWritable()).toEqual(Buffer.from(theirs.toWritable({}) as string));
    expect(command.getKeys()).toEqual(theirs.getKeys());
    expect(command.getSlot()).toBe(theirs.getSlot());
  });
});
