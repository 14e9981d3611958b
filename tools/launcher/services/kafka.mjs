// One real Kafka broker (KRaft, one node, loopback only).
//
// With Java 17 and Maven the jars come from Maven's repository (docker/kafka/pom.xml); else, with
// a Docker engine, from the apache/kafka image. With neither there is no broker: the metering
// pipeline then runs direct, outbox to ledger, and bills every call just the same.

import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findOnPath, tryCommand } from '../lib/commands.mjs';
import { cacheDir, repoDir } from '../lib/paths.mjs';
import { freePort, isListening } from '../lib/ports.mjs';
import { manageProcess, runToEnd } from '../lib/processes.mjs';
import { externalService, serviceOf } from '../lib/service.mjs';

const POM_FILE = join(repoDir, 'docker', 'kafka', 'pom.xml');
const JAVA_MAJOR_MIN = 17;

// Maven retries a dead repository for minutes. A first file must have come within this time, …
const MAVEN_FIRST_FILE_MS = 30_000;
// … later ones may not make us wait longer than this for a sign of life, …
const MAVEN_SILENCE_MS = 60_000;
// … and all of them together (120 MB) must be here within this.
const MAVEN_TOTAL_MS = 10 * 60_000;

const READY_MS = 60_000;

/**
 * @param {import('../lib/service.mjs').ServiceOptions & { isThrowaway?: boolean }} options isThrowaway:
 *   what it stored outside of `dir` (a Docker volume) goes when it is stopped
 * @returns {Promise<import('../lib/service.mjs').Service | null>} null when none can be had;
 *   the reason has then been logged in one line
 */
export async function startKafka({
  dir,
  port,
  log,
  externalUrl,
  onUnexpectedExit,
  isThrowaway = false,
}) {
  if (externalUrl) {
    const [host, externalPort] = splitAddress(externalUrl);
    if (!(await isListening(externalPort, host, 5_000))) {
      throw new Error(`Kafka does not answer at ${externalUrl} (KAFKA_BROKERS)`);
    }
    return externalService('kafka', externalUrl, externalPort);
  }
  mkdirSync(join(dir, 'logs'), { recursive: true });

  const runtime = await findRuntime(dir, log);
  if (runtime.kind === 'none') {
    log(direct(runtime.reason));
    return null;
  }
  const broker =
    runtime.kind === 'java'
      ? await javaBroker({ dir, port, runtime, onUnexpectedExit })
      : dockerBroker({ dir, port, runtime, isThrowaway, onUnexpectedExit });
  try {
    await broker.start();
  } catch (error) {
    if (runtime.kind === 'java') throw error;
    // Most likely the image cannot be pulled from here.
    log(direct(`the image apache/kafka does not start (see ${broker.logFile})`));
    return null;
  }
  return serviceOf(broker, { url: `127.0.0.1:${port}`, port });
}

/** @param {string} reason */
function direct(reason) {
  return `kafka: ${reason}; the pipeline runs direct (outbox to ledger), metering is complete`;
}

/**
 * @typedef {{ kind: 'java', java: string, classPath: string }} JavaRuntime
 * @typedef {{ kind: 'docker', docker: string }} DockerRuntime
 * @typedef {{ kind: 'none', reason: string }} NoRuntime
 */

/**
 * @param {string} dir
 * @param {(line: string) => void} log
 * @returns {Promise<JavaRuntime | DockerRuntime | NoRuntime>}
 */
async function findRuntime(dir, log) {
  let reason;
  const java = await findJava();
  if (java === null) {
    reason = `no Java ${JAVA_MAJOR_MIN}`;
  } else {
    const classPath = await findClassPath(dir, log);
    if (classPath.ok) return { kind: 'java', java, classPath: classPath.value };
    reason = classPath.reason;
  }
  const docker = findOnPath('docker');
  // `docker info` exits with 0 when only the client is there: ask for the server's version.
  const engine =
    docker === null
      ? { ok: false, output: '' }
      : await tryCommand(docker, ['version', '--format', '{{.Server.Version}}']);
  if (docker !== null && engine.ok) return { kind: 'docker', docker };
  return { kind: 'none', reason: `${reason} and no Docker engine` };
}

/** @returns {Promise<string | null>} */
async function findJava() {
  const candidates = [
    process.env.JAVA_HOME ? join(process.env.JAVA_HOME, 'bin', 'java') : null,
    findOnPath('java'),
  ];
  for (const java of candidates) {
    if (java === null) continue;
    const { ok, output } = await tryCommand(java, ['-version']);
    const major = Number(/version "(\d+)/.exec(output)?.[1] ?? 0);
    if (ok && major >= JAVA_MAJOR_MIN) return java;
  }
  return null;
}

/**
 * The class path from the cache, or from Maven.
 * @param {string} dir
 * @param {(line: string) => void} log
 * @returns {Promise<{ ok: true, value: string } | { ok: false, reason: string }>}
 */
async function findClassPath(dir, log) {
  const pomHash = createHash('sha256').update(readFileSync(POM_FILE)).digest('hex').slice(0, 16);
  const cacheFile = join(cacheDir, `kafka-classpath-${pomHash}.txt`);
  const cached = readClassPath(cacheFile);
  if (cached !== null) return { ok: true, value: cached };

  const maven = findOnPath('mvn');
  if (maven === null) return { ok: false, reason: 'no Maven' };
  mkdirSync(cacheDir, { recursive: true });
  log('kafka: fetching its jars with Maven, once');

  // A name of its own for each process: two launchers may do this at the same time.
  const partFile = `${cacheFile}.${process.pid}`;
  const logFile = join(dir, 'logs', 'maven.log');
  // Progress is read from it: an earlier attempt's lines must not count.
  rmSync(logFile, { force: true });
  const build = manageProcess({
    name: 'maven',
    command: maven,
    args: [
      '--batch-mode',
      '--file',
      POM_FILE,
      'dependency:build-classpath',
      '-Dmdep.includeScope=runtime',
      `-Dmdep.outputFile=${partFile}`,
    ],
    logFile,
  });
  await build.start();
  const isInTime = await watchMaven(build, logFile);
  const { code } = await build.ended();
  const value = code === 0 ? readClassPath(partFile) : null;
  if (value === null) {
    rmSync(partFile, { force: true });
    const why = isInTime ? 'failed' : 'cannot reach its repository';
    return { ok: false, reason: `Maven ${why} (see ${logFile})` };
  }
  renameSync(partFile, cacheFile);
  return { ok: true, value };
}

/**
 * Waits for Maven, and ends it when nothing comes. Progress is measured by its log: that holds
 * for any repository, mirror or proxy that its settings may name, which a probe of ours cannot know.
 * @param {import('../lib/processes.mjs').ManagedProcess} build
 * @param {string} logFile
 * @returns {Promise<boolean>} false when it was ended
 */
async function watchMaven(build, logFile) {
  const startedAt = Date.now();
  let lastSize = 0;
  let lastProgressAt = startedAt;
  let hasFirstFile = false;
  while (build.pid !== null) {
    await Promise.race([build.ended(), sleep(250)]);
    const text = readText(logFile);
    if (text.length !== lastSize) {
      lastSize = text.length;
      lastProgressAt = Date.now();
    }
    // "Downloading" is only the attempt. The build's own line comes at once when all is at hand.
    hasFirstFile ||= text.includes('Downloaded from') || text.includes(':build-classpath');
    const now = Date.now();
    const isTooLate =
      now - startedAt > MAVEN_TOTAL_MS ||
      (hasFirstFile
        ? now - lastProgressAt > MAVEN_SILENCE_MS
        : now - startedAt > MAVEN_FIRST_FILE_MS);
    if (isTooLate && build.pid !== null) {
      await build.kill('SIGKILL');
      return false;
    }
  }
  return true;
}

/**
 * @param {string} file
 * @returns {string | null} null unless every jar is there: Maven's own store may have been emptied
 */
function readClassPath(file) {
  const value = readText(file).trim();
  if (value === '') return null;
  return value.split(delimiter).every((jar) => existsSync(jar)) ? value : null;
}

/** @param {string} file */
function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/**
 * @param {{ dir: string, port: number, runtime: JavaRuntime, onUnexpectedExit?: ((message: string) => void) | undefined }} options
 */
async function javaBroker({ dir, port, runtime, onUnexpectedExit }) {
  const dataDir = join(dir, 'data');
  const settingsFile = join(dir, 'server.properties');
  writeFileSync(settingsFile, brokerSettings({ dataDir, port, controllerPort: await freePort() }));

  const logFile = join(dir, 'logs', 'kafka.log');
  const javaArgs = [
    // Small and quiet beside the applications: this is one broker on one machine.
    '-Xmx512m',
    '-Xms128m',
    '-XX:+UseSerialGC',
    '-XX:+ExitOnOutOfMemoryError',
    '-Dorg.slf4j.simpleLogger.showDateTime=true',
    '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS',
    // Its listings of every setting, several hundred lines at each start.
    '-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn',
    '-cp',
    runtime.classPath,
  ];
  if (!existsSync(join(dataDir, 'meta.properties'))) {
    // A start that was cut off during formatting leaves a directory that Kafka refuses.
    rmSync(dataDir, { recursive: true, force: true });
    await runToEnd({
      name: 'kafka storage format',
      command: runtime.java,
      args: [
        ...javaArgs,
        'kafka.tools.StorageTool',
        'format',
        '--standalone',
        '--cluster-id',
        newClusterId(),
        '--config',
        settingsFile,
      ],
      logFile: join(dir, 'logs', 'format.log'),
      timeoutMs: READY_MS,
    });
  }
  return manageProcess({
    name: 'kafka',
    command: runtime.java,
    args: [...javaArgs, 'kafka.Kafka', settingsFile],
    cwd: dir,
    logFile,
    readyMs: READY_MS,
    isReady: () => hasBroker(port),
    ...(onUnexpectedExit && { onUnexpectedExit }),
  });
}

/**
 * @param {{ dir: string, port: number, runtime: DockerRuntime, isThrowaway: boolean, onUnexpectedExit?: ((message: string) => void) | undefined }} options
 */
function dockerBroker({ dir, port, runtime, isThrowaway, onUnexpectedExit }) {
  const version = /<artifactId>kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(
    readFileSync(POM_FILE, 'utf8'),
  )?.[1];
  // The image runs as its own user: a named volume takes that user's rights, a directory of ours would not.
  const name = `weir-kafka-${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`;
  const env = dockerEnv({ port, clusterId: name });
  const removeVolume = async () => {
    await tryCommand(runtime.docker, ['volume', 'rm', '--force', name], { timeoutMs: 30_000 });
  };
  const removeContainer = async () => {
    await tryCommand(runtime.docker, ['rm', '--force', name], { timeoutMs: 30_000 });
  };
  return manageProcess({
    name: 'kafka',
    command: runtime.docker,
    args: [
      ...['run', '--rm', '--name', name, '--publish', `127.0.0.1:${port}:${port}`],
      ...['--volume', `${name}:/var/lib/kafka/data`],
      ...Object.entries(env).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
      `apache/kafka:${version}`,
    ],
    logFile: join(dir, 'logs', 'kafka.log'),
    // The first run pulls the image.
    readyMs: MAVEN_TOTAL_MS,
    isReady: () => hasBroker(port),
    beforeStart: removeContainer,
    // SIGKILL ends only the client: the container goes on without it.
    afterKill: removeContainer,
    ...(isThrowaway && { afterStop: removeVolume }),
    ...(onUnexpectedExit && { onUnexpectedExit }),
  });
}

/**
 * The same settings as the image wants them: one variable each.
 * @param {{ port: number, clusterId: string }} options
 * @returns {Record<string, string>}
 */
export function dockerEnv({ port, clusterId }) {
  const controllerPort = port === 9093 ? 9094 : 9093;
  const settings = brokerSettings({ dataDir: '/var/lib/kafka/data', port, controllerPort })
    .trim()
    .split('\n')
    .map((line) => /** @type {[string, string]} */ (line.split(/=(.*)/s)))
    // The image formats its storage for a fixed list of voters, not for a growing one.
    .filter(([key]) => key !== 'controller.quorum.bootstrap.servers');
  settings.push(['controller.quorum.voters', `1@127.0.0.1:${controllerPort}`]);
  const env = Object.fromEntries(
    settings.map(([key, value]) => [`KAFKA_${key.toUpperCase().replaceAll('.', '_')}`, value]),
  );
  return {
    ...env,
    // Inside the container the loopback interface is not the one that is published.
    KAFKA_LISTENERS: `PLAINTEXT://0.0.0.0:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://127.0.0.1:${port}`,
    KAFKA_HEAP_OPTS: '-Xmx512m -Xms128m',
    // The same at each start, or the broker would refuse the volume it wrote itself.
    CLUSTER_ID: createHash('sha256').update(clusterId).digest('hex').slice(0, 22),
  };
}

/** 16 random bytes in base64, as Kafka writes them: never with a leading dash, which would look like an option. */
function newClusterId() {
  return randomBytes(16).toString('base64url').replace(/^-/, 'A');
}

/**
 * @param {{ dataDir: string, port: number, controllerPort: number }} options
 */
function brokerSettings({ dataDir, port, controllerPort }) {
  const settings = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'controller.quorum.bootstrap.servers': `127.0.0.1:${controllerPort}`,
    'log.dirs': dataDir,
    // Topics are made by the worker, with the number of partitions that it wants.
    'auto.create.topics.enable': false,
    'num.partitions': 6,
    // The internal topics expect three brokers and up to 50 partitions each: one broker, few users.
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 10,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 5,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // The first consumer of a group need not wait 3 s for others to join.
    'group.initial.rebalance.delay.ms': 0,
    // A broker that was killed is let back in as soon as it returns.
    'broker.session.timeout.ms': 3000,
    'broker.heartbeat.interval.ms': 500,
    'num.network.threads': 2,
    'num.io.threads': 4,
    'log.cleaner.dedupe.buffer.size': 16 * 1024 * 1024,
    'log.segment.bytes': 64 * 1024 * 1024,
  };
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

/**
 * Whether the broker answers and counts itself in. A listening socket alone says too little:
 * Kafka opens it before it has caught up with its own metadata.
 * @param {number} port
 */
async function hasBroker(port) {
  if (!(await isListening(port))) return false;
  // Imported only here: the launcher itself must run before `npm ci` has.
  const { Kafka, logLevel } = (await import('kafkajs')).default;
  const admin = new Kafka({
    clientId: 'weir-launcher',
    brokers: [`127.0.0.1:${port}`],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 5_000,
    retry: { retries: 0 },
  }).admin();
  try {
    await admin.connect();
    return (await admin.describeCluster()).brokers.length > 0;
  } catch {
    return false;
  } finally {
    await admin.disconnect().catch(() => {});
  }
}

/**
 * @param {string} brokers
 * @returns {[string, number]} the first address of a list
 */
function splitAddress(brokers) {
  const first = brokers.split(',')[0]?.trim() ?? '';
  const colon = first.lastIndexOf(':');
  return [first.slice(0, colon), Number(first.slice(colon + 1))];
}
