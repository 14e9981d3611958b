export * from './quota-engine.js';
