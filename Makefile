# Two commands do everything: `make demo` and `make test`. Both set up what they need.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN = $(VENV)/bin
# Tests start many processes, which would each compile what they import where bytecode is not kept.
export PYTHONDONTWRITEBYTECODE :=
OUT ?= demo-out

.PHONY: demo test check unit portable quick slow-tests long-tests fuzz sim sim-faults soak-kill soak-cluster soak-moves soak-clean soak-idle soak-transactions soak-groups soak-handshakes sweep-damage outsiders compat-streams compat-mixed compat-groups compat-transactions planner-clusters spark-cluster compare-dumps compare-recovery compare-authorizer compare-secured compare-wire compare-wire-random compare-cluster-random compare-tools compare-tools-random perf perf-broker compat completions reference stubs pictures docs man release clean

demo: $(VENV)/.demo-ready
	@$(BIN)/python tools/demo.py "$(OUT)"

# Checks use one core, and so do tests that wait: side by side they take a minute less. What both
# need is set up side by side, too.
test:
	@$(MAKE) --no-print-directory -j2 check unit

check: $(VENV)/.dev-ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests in processes, in groups whose order is the one of tests/long_tests.txt. One that hangs ends with a failure; a
# process that ends by that, or by itself, ends the run.
PYTEST = $(BIN)/python -m pytest --dist loadgroup --no-loadscope-reorder --max-worker-restart 0

# Half of the time tests wait for brokers: four processes keep two cores busy.
unit: $(VENV)/.dev-ready $(VENV)/.kafka-tools
	KCTL_TEST_KAFKA_LIBS="$(abspath $(VENV))/kafka-tools" $(PYTEST) -n 4

# The tests that start no processes of brokers, Java or Spark: what must hold on every Python.
PORTABLE = tests/unit tests/property tests/test_tidy.py tests/test_docs.py
portable: $(VENV)/.dev-ready
	$(PYTEST) -n 2 $(PORTABLE)

# Four fifths of those, in a quarter of the time: without what tests/slow_tests.txt lists.
quick: $(VENV)/.dev-ready
	$(PYTEST) -n 2 --quick $(PORTABLE)

slow-tests: $(VENV)/.dev-ready
	$(PYTEST) -n 2 --durations=0 --durations-min=0.02 $(PORTABLE) | $(BIN)/python -m tests.slow_tests

long-tests: $(VENV)/.dev-ready $(VENV)/.kafka-tools
	KCTL_TEST_KAFKA_LIBS="$(abspath $(VENV))/kafka-tools" $(PYTEST) -n 3 --durations=0 --durations-min=0.02 | $(BIN)/python -m tests.long_tests

# By hand: the slow tiers.
fuzz: $(VENV)/.dev-ready
	$(BIN)/pip install --quiet atheris
	$(BIN)/python -m tests.fuzz.fuzz_records -max_total_time=300
	$(BIN)/python -m tests.fuzz.fuzz_wire -max_total_time=300
	$(BIN)/python -m tests.fuzz.fuzz_frames -max_total_time=300 -len_control=0 -max_len=84

# Whole clusters on virtual time, from a seed on: make sim FIRST=1000 SEEDS=5000
FIRST ?= 0
SEEDS ?= 300

sim: $(VENV)/.dev-ready
	$(BIN)/python -m kctl sim run --seed $(FIRST) --seeds $(SEEDS) --jobs 2

# Every planted fault, each with seeds from 0 on until a rule breaks.
sim-faults: $(VENV)/.dev-ready
	$(BIN)/python -m tests.sim.mutants

# A broker that is killed again and again while clients write: make soak-kill ROUNDS=200 SEED=7
ROUNDS ?= 50
SEED ?= $(shell date +%s)

soak-kill: $(VENV)/.dev-ready $(VENV)/.kafka-tools
	KCTL_TEST_KAFKA_LIBS="$(abspath $(VENV))/kafka-tools" $(BIN)/python -m tests.soak.kill_broker --rounds $(ROUNDS) --seed $(SEED)

# Three brokers in processes, each of them and the store killed, paused and restarted during a load:
# make soak-cluster CYCLES=300 SEED=7
CYCLES ?= 50

soak-cluster: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soak.kill_cluster --cycles $(CYCLES) --seed $(SEED)

# Replicas moved by kctl during a load, with kctl, brokers and controllers killed on the way:
# make soak-moves MOVES="--address HOST:PORT" for a running cluster of any Kafka.
MOVES ?= --brokers 3

soak-moves: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soak.move_replicas $(MOVES)

# Keyed load, cleaner and retention during kills, on one broker and on three:
# make soak-clean MINUTES=10 SEED=7
MINUTES ?= 10

soak-clean: $(VENV)/.dev-ready $(VENV)/.kafka-tools
	for brokers in 1 3; do \
		KCTL_TEST_KAFKA_LIBS="$(abspath $(VENV))/kafka-tools" $(BIN)/python -m tests.soak.clean_logs \
			--brokers $$brokers --minutes $(MINUTES) --seed $(SEED) || exit 1; \
	done

# A thousand partitions of three replicas that nobody asks for anything, after a load: in one process,
# then in one of each broker. What brokers hold does not grow: make soak-idle MINUTES=10
soak-idle: $(VENV)/.dev-ready
	for kind in "" --processes; do \
		$(BIN)/python -m tests.soak.idle_cluster --minutes $(MINUTES) $$kind || exit 1; \
	done

# Workers that copy in transactions while they, brokers, the controller and the store are killed:
# make soak-transactions MINUTES=10 SEED=7
soak-transactions: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soak.copy_exactly_once --minutes $(MINUTES) --seed $(SEED)

# Groups of several clients whose members and coordinators are killed: make soak-groups MINUTES=30 SEED=7
soak-groups: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soak.kill_members --minutes $(MINUTES) --seed $(SEED)

# A thousand connections that stay in their handshakes: make soak-handshakes MINUTES=10 SEED=7
soak-handshakes: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soak.hostile_handshakes --minutes $(MINUTES) --seed $(SEED)

# Every bit of every byte of a small log directory flipped, every file of it cut at every length, one
# damage at a time, through verify and export. Takes about 5 minutes on one core.
sweep-damage: $(VENV)/.dev-ready
	$(BIN)/python -m tests.soak.sweep_damage

# Other people's clients against three brokers, each in a process of its own; `make test` runs them
# against one broker and against three of one process.
outsiders: $(VENV)/.dev-ready $(VENV)/.kafka-tools
	KCTL_TEST_KAFKA_LIBS="$(abspath $(VENV))/kafka-tools" KCTL_TEST_CLUSTERS=processes \
		$(PYTEST) -n 2 $(addprefix tests/cluster/test_,\
		kafka_python.py confluent.py aiokafka.py java_tools.py)

# Plans for some thousands of generated clusters, held to what no plan may do.
planner-clusters: $(VENV)/.dev-ready
	HYPOTHESIS_PROFILE=wide $(BIN)/python -m pytest -n 2 tests/property/test_planner.py

# A master and two workers of Spark on loopback, and a Connect server, whose tasks run in a Python
# without kctl. A worker and a driver are killed on the way. Then every query on both engines and all
# cases. Takes some minutes.
spark-cluster: $(VENV)/.dev-ready
	$(BIN)/pip install --quiet --editable '.[connect]'
	KCTL_TEST_SPARK_CLUSTER=1 $(BIN)/python -m pytest tests/spark/test_cluster.py
	KCTL_TEST_EVERY_CASE=1 $(BIN)/python -m pytest tests/spark/test_engines_agree.py

# The jars of a Kafka release, whose dump tool ours is compared with on damaged logs.
KAFKA_LIBS ?= libs
KAFKA_VERSION ?= 3.9.1

compare-dumps: $(VENV)/.dev-ready
	$(BIN)/python -m tools.kafka_dumps.compare --libs "$(KAFKA_LIBS)" --version $(KAFKA_VERSION)

# What its broker makes of logs whose offsets repeat, overlap and go back, beside what ours does.
RECOVERY ?= --count 400 --lost 20

compare-recovery: $(VENV)/.dev-ready
	$(BIN)/python -m tools.kafka_recovery.compare --libs "$(KAFKA_LIBS)" $(RECOVERY)

# Decisions of its AclAuthorizer beside ours, for drawn rules and requests: make compare-authorizer FIRST=1000 SETS=500
SETS ?= 500

compare-authorizer: $(VENV)/.dev-ready
	$(BIN)/python -m tests.compat.authorizer "$(KAFKA_LIBS)" --first $(FIRST) --sets $(SETS)

# A broker of it and one of ours behind SASL, TLS and access rules; both are started and stopped:
# make compare-secured KAFKA_LIBS=DIR PART=denied, or PART=clients with NEWER=DIR for one more of Java's
PART ?=
NEWER ?=

compare-secured: $(VENV)/.dev-ready
	$(BIN)/python -m tests.compat.secured "$(KAFKA_LIBS)" $(if $(PART),--only $(PART)) $(if $(NEWER),--newer "$(NEWER)")

# The command that runs Kafka's own dump tool, which ours is timed against.
KAFKA_DUMP_LOG ?= kafka-dump-log.sh

# The same requests to a broker of Kafka 3.9.1 and to one of ours, both fresh and of broker.id=1 with
# auto.create.topics.enable=false: make compare-wire REAL=host:port OURS=host:port
ONLY ?=

compare-wire: $(VENV)/.dev-ready
	@test -n "$(REAL)" -a -n "$(OURS)" || { echo "set REAL=host:port OURS=host:port" >&2; exit 1; }
	$(BIN)/python -m tests.compat.wire_compare --real "$(REAL)" --ours "$(OURS)" --only "$(ONLY)"

# Requests drawn from seeds in place of written ones: make compare-wire-random REAL=host:port OURS=host:port FIRST=7 STAGES=50
STAGES ?= 20

compare-wire-random: $(VENV)/.dev-ready
	@test -n "$(REAL)" -a -n "$(OURS)" || { echo "set REAL=host:port OURS=host:port" >&2; exit 1; }
	$(BIN)/python -m tests.compat.wire_random --real "$(REAL)" --ours "$(OURS)" --seed $(FIRST) --stages $(STAGES)

# Three brokers of Kafka and three of ours on one ZooKeeper under the same drawn operations; all are
# started and stopped: make compare-cluster-random KAFKA_LIBS=DIR FIRST=7 SEQUENCES=5
SEQUENCES ?= 3

compare-cluster-random: $(VENV)/.dev-ready
	$(BIN)/python -m tests.compat.cluster_random "$(KAFKA_LIBS)" --seed $(FIRST) --sequences $(SEQUENCES)

perf: $(VENV)/.dev-ready
	$(BIN)/python -m tests.perf.dump_log --kafka "$(KAFKA_DUMP_LOG)"

# Beside brokers that run: make perf-broker PEERS='--peer "Kafka 3.9.1=127.0.0.1:9092=PID"'
PEERS ?=

perf-broker: $(VENV)/.dev-ready
	$(BIN)/python -m tests.perf.broker $(PEERS)

# Kafka's own tools on a real broker and on ours, step by step; both are fresh and listen already.
SCENARIO ?= scenario.yaml
KAFKA_TOOL ?= kafka-{tool}.sh
REAL ?= 127.0.0.1:9092=/tmp/kafka-logs
OURS ?= 127.0.0.1:9093=/tmp/kctl-logs

compare-tools: $(VENV)/.dev-ready
	$(BIN)/python -m tests.compat.java_scenario --scenario "$(SCENARIO)" --command "$(KAFKA_TOOL)" \
		--real "$(REAL)" --ours "$(OURS)"

# Drawn command lines: Kafka's tools on one real broker and ours on another, both of one release and of
# broker.id=1 with log.dirs=DATA/d1,DATA/d2, an authorizer and auto.create.topics.enable=false:
# make compare-tools-random KAFKA_LIBS=DIR REAL=host:port=DATA OURS=host:port=DATA FIRST=7 STAGES=50
TOOLS ?=

compare-tools-random: $(VENV)/.dev-ready
	$(BIN)/python -m tests.compat.tools_random --libs "$(KAFKA_LIBS)" --version $(KAFKA_VERSION) \
		--real "$(REAL)" --ours "$(OURS)" --seed $(FIRST) --stages $(STAGES) --tools "$(TOOLS)"

# Against a cluster: make compat KCTL_TEST_BOOTSTRAP=host:port
compat: $(VENV)/.dev-ready
	@test -n "$(KCTL_TEST_BOOTSTRAP)" || { echo "set KCTL_TEST_BOOTSTRAP=host:port" >&2; exit 1; }
	KCTL_TEST_BOOTSTRAP="$(KCTL_TEST_BOOTSTRAP)" $(BIN)/python -m pytest tests/compat

# Kafka Streams counts words while brokers are killed: make compat-streams LIBS=DIR, with its jars
LIBS ?=

compat-streams: $(VENV)/.dev-ready
	@test -n "$(LIBS)" || { echo "set LIBS to a directory with the jars of kafka-streams" >&2; exit 1; }
	$(BIN)/python -m tests.compat.streams "$(LIBS)"

# Coordinators that pass between our brokers and one of Java's.
compat-mixed: $(VENV)/.dev-ready $(VENV)/.kafka-tools
	KCTL_TEST_KAFKA_LIBS="$(abspath $(VENV))/kafka-tools" $(BIN)/python -m tests.compat.mixed_cluster

# Groups of outsiders' clients while members and coordinators come and go: make compat-groups CLIENTS="confluent java"
# on COUNT brokers of ours, with BROKERS=kafka on those of KAFKA_LIBS=DIR; NEWER=DIR are the jars of java-newer.
COUNT ?= 3
CLIENTS ?= confluent kafka-python aiokafka java
BROKERS ?= ours

compat-groups: $(VENV)/.dev-ready
	$(BIN)/python -m tests.compat.groups $(BROKERS) $(COUNT) $(CLIENTS) $(if $(KAFKA_LIBS),--libs "$(KAFKA_LIBS)") $(if $(NEWER),--newer-libs "$(NEWER)")

# Transactions of outsiders' clients, their coordinator or leader killed after each step: on COUNT brokers of ours, or of
# Kafka's with BROKERS=kafka: make compat-transactions COUNT=1 KAFKA_LIBS=DIR
compat-transactions: $(VENV)/.dev-ready
	$(BIN)/python -m tests.compat.transactions $(BROKERS) $(COUNT) $(CLIENTS) $(if $(KAFKA_LIBS),--libs "$(KAFKA_LIBS)") $(if $(NEWER),--newer-libs "$(NEWER)")

completions: $(VENV)/.dev-ready
	for s in bash zsh fish; do $(BIN)/kctl completions $$s > completions/kctl.$$s; done

stubs: $(VENV)/.dev-ready
	$(BIN)/python -m tools.message_stubs

reference: $(VENV)/.dev-ready
	$(BIN)/python -m tools.reference

# What commands print, on a cluster that is started for it: docs/images/*.svg
pictures: $(VENV)/.dev-ready
	$(BIN)/python -m tools.pictures

# The documentation as a site that opens from its folder: build/site/index.html
docs: $(VENV)/.docs-ready
	$(BIN)/python -m tools.docs_site build/site-pages
	$(BIN)/zensical build --strict --clean --config-file mkdocs.yml

# Manual pages of all commands: man -M build kctl-topics-list
man: $(VENV)/.dev-ready
	$(BIN)/python -m tools.man_pages build/man1

# A release in dist/: source, wheel, manual pages, bill of materials, licences, checksums
release: $(VENV)/.release-ready
	$(BIN)/python -m tools.release dist

# Nothing is compiled before it is imported: of all that is installed, few modules are.
PIP_INSTALL = $(BIN)/pip install --quiet --no-compile

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "kctl needs Python 3.11 or newer" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo-ready: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) --editable '.[fast,spark]'
	@touch $@

$(VENV)/.dev-ready: pyproject.toml | $(VENV)/bin/python
	$(PIP_INSTALL) --editable '.[dev,fast,schemas,spark]'
	@touch $@

$(VENV)/.docs-ready: $(VENV)/.dev-ready
	$(BIN)/pip install --quiet --editable '.[docs]'
	@touch $@

$(VENV)/.release-ready: $(VENV)/.dev-ready
	$(BIN)/pip install --quiet --editable '.[release]'
	@touch $@

# Kafka's own tools, for the tests that run them against our broker; where Maven is not there, or
# reaches nothing, those tests are skipped and say so.
$(VENV)/.kafka-tools: tests/cluster/pom.xml | $(VENV)/bin/python
	@rm -rf $(VENV)/kafka-tools.part
	@if command -v mvn >/dev/null && mvn -q -B -f tests/cluster/pom.xml \
		org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
		-DoutputDirectory="$(abspath $(VENV))/kafka-tools.part"; then \
		rm -f $(VENV)/kafka-tools.part/slf4j-reload4j*.jar; \
		rm -rf $(VENV)/kafka-tools && mv $(VENV)/kafka-tools.part $(VENV)/kafka-tools; \
	else echo "Kafka's tools are not there: the tests that need them are skipped"; fi
	@touch $@

clean:
	rm -rf $(VENV) $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis
