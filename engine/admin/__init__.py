"""What administrators ask for: topics made and grown, settings changed (Kafka's ZkAdminManager)."""
